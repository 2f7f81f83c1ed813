-- Failed rows that others of their order_key wait for. One that was a head before stays it, and what a task that had its
-- id before has left is overwritten.
INSERT INTO `{table}_heads` (head_id, shard, route, order_key, message_id, failures)
SELECT o.id, o.shard, o.route, o.order_key, o.message_id, v.failures
FROM JSON_TABLE({rows}, '$[*]' COLUMNS (
    id BIGINT UNSIGNED PATH '$[0]', state_from INT UNSIGNED PATH '$[1]', attempt_from INT UNSIGNED PATH '$[2]',
    shard INT UNSIGNED PATH '$[3]', failures INT UNSIGNED PATH '$[6]',
    message_id VARCHAR(65) CHARACTER SET ascii COLLATE ascii_bin PATH '$[20]',
    changed_at DATETIME(6) PATH '$[21]')) v
STRAIGHT_JOIN `{table}` o FORCE INDEX (PRIMARY)
  ON o.id = v.id AND o.message_id = v.message_id AND o.state + 0 = v.state_from AND o.attempt = v.attempt_from AND o.shard = v.shard
  AND (v.changed_at IS NULL OR o.changed_at = v.changed_at)
ON DUPLICATE KEY UPDATE shard = o.shard, route = o.route, order_key = o.order_key, message_id = o.message_id,
  failures = v.failures
