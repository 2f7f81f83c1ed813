-- Rows whose consumer says that it still works. A row whose publish is not recorded yet has no lease to extend.
UPDATE JSON_TABLE({rows}, '$[*]' COLUMNS (
    id BIGINT UNSIGNED PATH '$[0]', state_from INT UNSIGNED PATH '$[1]', attempt_from INT UNSIGNED PATH '$[2]',
    shard INT UNSIGNED PATH '$[3]', delay_us BIGINT PATH '$[8]', progress DOUBLE PATH '$[13]',
    checkpoint MEDIUMTEXT CHARACTER SET utf8mb4 PATH '$[14]',
    message_id VARCHAR(65) CHARACTER SET ascii COLLATE ascii_bin PATH '$[20]', changed_at DATETIME(6) PATH '$[21]')) v
STRAIGHT_JOIN `{table}` o FORCE INDEX (PRIMARY)
  ON o.id = v.id AND o.message_id = v.message_id AND o.state + 0 = v.state_from AND o.attempt = v.attempt_from AND o.shard = v.shard
  AND (v.changed_at IS NULL OR o.changed_at = v.changed_at)
SET o.changed_at = o.changed_at, o.progress = COALESCE(v.progress, o.progress), o.checkpoint = COALESCE(v.checkpoint, o.checkpoint),
    o.lease_until = GREATEST(o.lease_until,
                             UTC_TIMESTAMP(6) + INTERVAL LEAST(v.delay_us, 315360000000000) MICROSECOND)
WHERE {fence}
