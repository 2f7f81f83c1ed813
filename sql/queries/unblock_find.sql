-- Blocked rows of a route whose order_key has no living head.
SELECT b.id FROM `{table}` b FORCE INDEX (ix_next)
WHERE b.state = 'blocked' AND b.shard = {shard} AND b.route = {route} AND NOT EXISTS (
  SELECT 1 FROM `{table}_heads` h FORCE INDEX (ix_order_key) STRAIGHT_JOIN `{table}` o FORCE INDEX (PRIMARY)
    ON o.id = h.head_id AND o.route = h.route AND o.order_key = h.order_key AND o.state <> 'awaiting'
  WHERE h.route = b.route AND h.order_key = b.order_key AND h.head_id <> b.id)
LIMIT {limit}
