-- Rows that change their state and keep their due time: handed back, held or blocked. A waiting one that is given back
-- although it was not claimed goes where somebody asked for. A shard without meaning (that of bound tasks for an unbound
-- one, another for a bound one) is passed over. That one may have been sent by a daemon that died is known by its shard:
-- where it leaves that, its row says it. The order matters: what is read here is not assigned before.
UPDATE JSON_TABLE({rows}, '$[*]' COLUMNS (
    id BIGINT UNSIGNED PATH '$[0]', state_from INT UNSIGNED PATH '$[1]', attempt_from INT UNSIGNED PATH '$[2]',
    shard INT UNSIGNED PATH '$[3]', state_to INT UNSIGNED PATH '$[4]', attempt INT UNSIGNED PATH '$[5]',
    failures INT UNSIGNED PATH '$[6]', recoveries INT UNSIGNED PATH '$[7]',
    error_class VARCHAR(64) CHARACTER SET utf8mb4 PATH '$[11]', error TEXT CHARACTER SET utf8mb4 PATH '$[12]',
    message_id VARCHAR(65) CHARACTER SET ascii COLLATE ascii_bin PATH '$[20]', changed_at DATETIME(6) PATH '$[21]')) v
STRAIGHT_JOIN `{table}` o FORCE INDEX (PRIMARY)
  ON o.id = v.id AND o.message_id = v.message_id AND o.state + 0 = v.state_from AND o.attempt = v.attempt_from AND o.shard = v.shard
  AND (v.changed_at IS NULL OR o.changed_at = v.changed_at)
SET o.recoveries = IF(v.state_from = 1 AND v.state_to = 1 AND (o.move_to_shard IS NOT NULL OR o.move_to_host IS NOT NULL)
        AND v.attempt = 0
        AND {o_ripe} <= (SELECT s.abandoned_at FROM `{table}_shards` s WHERE s.shard = o.shard),
      GREATEST(v.recoveries, 1), v.recoveries),
    o.shard = CASE
      WHEN v.state_from <> 1 OR v.state_to <> 1 OR (o.move_to_shard IS NULL AND o.move_to_host IS NULL) THEN o.shard
      WHEN COALESCE(o.move_to_host, o.target_host) <> '' THEN 63
      WHEN o.move_to_shard < 63 THEN o.move_to_shard
      WHEN o.shard < 63 THEN o.shard
      ELSE CRC32(IF(LENGTH(o.order_key) = 0, o.message_id, o.order_key)) MOD {shard_count}
    END,
    o.target_host = IF(v.state_from = 1 AND v.state_to = 1, COALESCE(o.move_to_host, o.target_host), o.target_host),
    o.move_to_shard = IF(v.state_from = 1 AND v.state_to = 1, NULL, o.move_to_shard),
    o.move_to_host = IF(v.state_from = 1 AND v.state_to = 1, NULL, o.move_to_host),
    o.changed_at = o.changed_at, o.state = v.state_to, o.claimed_by = NULL, o.lease_until = NULL,
    o.attempt = v.attempt, o.failures = v.failures,
    o.error_class = COALESCE(v.error_class, o.error_class), o.last_error = COALESCE(v.error, o.last_error)
WHERE {fence}
