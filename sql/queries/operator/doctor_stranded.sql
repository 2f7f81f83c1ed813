-- Heads of order keys that wait for a host which lives nowhere.
SELECT o.id, o.route, o.order_key, o.message_id, o.target_host
FROM `{table}_heads` h FORCE INDEX (PRIMARY) STRAIGHT_JOIN `{table}` o FORCE INDEX (PRIMARY) ON {head_lives}
WHERE o.shard = 63 AND NOT {host_lives} ORDER BY h.head_id LIMIT {cap}
