-- Rows that are to be tried again. first_due_at keeps when they were first asked for. Where a copy of what is there has
-- left, this is recorded (result_lock.sql). The order matters: what is read here is not assigned before.
UPDATE JSON_TABLE({rows}, '$[*]' COLUMNS (
    id BIGINT UNSIGNED PATH '$[0]', state_from INT UNSIGNED PATH '$[1]', attempt_from INT UNSIGNED PATH '$[2]',
    shard INT UNSIGNED PATH '$[3]', attempt INT UNSIGNED PATH '$[5]', failures INT UNSIGNED PATH '$[6]',
    recoveries INT UNSIGNED PATH '$[7]', delay_us BIGINT PATH '$[8]', published DATETIME(6) PATH '$[9]',
    error_class VARCHAR(64) CHARACTER SET utf8mb4 PATH '$[11]', error TEXT CHARACTER SET utf8mb4 PATH '$[12]',
    progress DOUBLE PATH '$[13]', checkpoint MEDIUMTEXT CHARACTER SET utf8mb4 PATH '$[14]',
    message_id VARCHAR(65) CHARACTER SET ascii COLLATE ascii_bin PATH '$[20]', changed_at DATETIME(6) PATH '$[21]',
    sent INT UNSIGNED PATH '$[22]')) v
STRAIGHT_JOIN `{table}` o FORCE INDEX (PRIMARY)
  ON o.id = v.id AND o.message_id = v.message_id AND o.state + 0 = v.state_from AND o.attempt = v.attempt_from AND o.shard = v.shard
  AND (v.changed_at IS NULL OR o.changed_at = v.changed_at)
SET o.changed_at = CASE WHEN v.sent = 0 THEN o.changed_at
      WHEN o.attempt = 0 OR MOD(TIMESTAMPDIFF(MICROSECOND, o.created_at, o.changed_at), 900000000) = 0 THEN o.created_at
      ELSE o.created_at - INTERVAL 1 MICROSECOND END,
    o.sent_digest = IF(v.sent, {content}, o.sent_digest),
    o.first_due_at = COALESCE(o.first_due_at, o.due_at, {o_by_delay}),
    o.due_at = UTC_TIMESTAMP(6) + INTERVAL LEAST(v.delay_us, 315360000000000) MICROSECOND,
    o.state = 'scheduled', o.claimed_by = NULL, o.lease_until = NULL,
    o.attempt = v.attempt, o.failures = v.failures, o.recoveries = v.recoveries,
    o.published_at = COALESCE(v.published, o.published_at),
    o.error_class = v.error_class, o.last_error = v.error,
    o.progress = COALESCE(v.progress, o.progress), o.checkpoint = COALESCE(v.checkpoint, o.checkpoint)
WHERE {fence}
