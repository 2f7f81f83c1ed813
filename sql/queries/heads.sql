-- Heads of order keys whose task is alive and has not left since, wherever it is by now: of one key in the order in which
-- its tasks are to go.
SELECT h.head_id, o.failures, h.route, h.order_key
FROM `{table}_heads` h {index} STRAIGHT_JOIN `{table}` o FORCE INDEX (PRIMARY)
  ON {head_lives}
WHERE {behind} AND {until}
ORDER BY o.priority DESC, COALESCE(o.first_due_at, o.due_at, {o_by_delay}), o.id
