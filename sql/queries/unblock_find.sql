-- The next blocked rows of a route, and of each whether its order_key has no living head; a head itself waits for those
-- before it only. {failed_too}: whether one that has failed is still a head. Bound rows are their host's while it lives:
-- it sends, and knows when all of a key are back.
SELECT b.id, b.priority, b.next_at, ({ours} AND NOT EXISTS (
  SELECT 1 FROM `{table}_heads` h FORCE INDEX (ix_order_key) STRAIGHT_JOIN `{table}` o FORCE INDEX (PRIMARY)
    ON {head_lives}
    AND ({failed_too} OR o.failures = 0)
  WHERE h.route = b.route AND h.order_key = b.order_key AND LENGTH(h.order_key) = LENGTH(b.order_key) AND h.head_id <> b.id
    AND (NOT EXISTS (SELECT 1 FROM `{table}_heads` own WHERE own.head_id = b.id AND own.route = b.route
          AND (own.message_id = '' OR own.message_id = b.message_id AND own.failures = b.failures)
          AND own.order_key = b.order_key)
      OR o.priority > b.priority OR o.priority = b.priority
        AND (COALESCE(o.first_due_at, o.due_at, {o_by_delay}), o.id)
          < (COALESCE(b.first_due_at, b.due_at, {b_by_delay}), b.id)))) IS TRUE
FROM (SELECT id FROM `{table}` FORCE INDEX (ix_next)
  WHERE state = 'blocked' AND shard = {shard} AND route = {route}
    AND (priority > {priority} OR priority = {priority} AND (next_at > {after_at} OR next_at = {after_at} AND id > {after_id}))
  ORDER BY priority, next_at, id LIMIT {limit}) v
STRAIGHT_JOIN `{table}` b FORCE INDEX (PRIMARY) ON b.id = v.id
