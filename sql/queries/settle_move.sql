-- Rows that change their state and keep their due time: handed back, held or blocked.
UPDATE JSON_TABLE({rows}, '$[*]' COLUMNS (
    id BIGINT UNSIGNED PATH '$[0]', state_from INT UNSIGNED PATH '$[1]', attempt_from INT UNSIGNED PATH '$[2]',
    shard INT UNSIGNED PATH '$[3]', state_to INT UNSIGNED PATH '$[4]', attempt INT UNSIGNED PATH '$[5]',
    failures INT UNSIGNED PATH '$[6]', recoveries INT UNSIGNED PATH '$[7]',
    error_class VARCHAR(64) PATH '$[11]', error TEXT PATH '$[12]',
    message_id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin PATH '$[20]',
    changed_at DATETIME(6) PATH '$[21]')) v
STRAIGHT_JOIN `{table}` o FORCE INDEX (PRIMARY)
  ON o.id = v.id AND o.message_id = v.message_id AND o.state + 0 = v.state_from AND o.attempt = v.attempt_from AND o.shard = v.shard
  AND (v.changed_at IS NULL OR o.changed_at = v.changed_at)
SET o.changed_at = o.changed_at, o.state = v.state_to, o.claimed_by = NULL, o.lease_until = NULL,
    o.attempt = v.attempt, o.failures = v.failures, o.recoveries = v.recoveries,
    o.error_class = COALESCE(v.error_class, o.error_class), o.last_error = COALESCE(v.error, o.last_error)
WHERE {fence}
