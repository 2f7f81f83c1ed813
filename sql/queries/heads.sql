-- Heads of order keys whose task is alive and has not left since.
SELECT h.head_id, h.shard, h.route, h.order_key
FROM `{table}_heads` h STRAIGHT_JOIN `{table}` o FORCE INDEX (PRIMARY) 
  ON o.id = h.head_id AND o.route = h.route AND o.order_key = h.order_key AND o.state <> 'awaiting'
WHERE h.shard IN ({shards})
