-- Rows whose result is awaited now, with the content that was sent (result_lock.sql).
UPDATE JSON_TABLE({rows}, '$[*]' COLUMNS (
    id BIGINT UNSIGNED PATH '$[0]', state_from INT UNSIGNED PATH '$[1]', attempt_from INT UNSIGNED PATH '$[2]',
    shard INT UNSIGNED PATH '$[3]', attempt INT UNSIGNED PATH '$[5]', failures INT UNSIGNED PATH '$[6]',
    recoveries INT UNSIGNED PATH '$[7]', delay_us BIGINT PATH '$[8]', published DATETIME(6) PATH '$[9]',
    progress DOUBLE PATH '$[13]', checkpoint MEDIUMTEXT CHARACTER SET utf8mb4 PATH '$[14]',
    message_id VARCHAR(65) CHARACTER SET ascii COLLATE ascii_bin PATH '$[20]', changed_at DATETIME(6) PATH '$[21]',
    answer_to BIGINT UNSIGNED PATH '$[23]')) v
STRAIGHT_JOIN `{table}` o FORCE INDEX (PRIMARY)
  ON o.id = v.id AND o.message_id = v.message_id AND o.state + 0 = v.state_from AND o.attempt = v.attempt_from AND o.shard = v.shard
  AND (v.changed_at IS NULL OR o.changed_at = v.changed_at)
SET o.changed_at = IF(o.attempt = 0 OR MOD(TIMESTAMPDIFF(MICROSECOND, o.created_at, o.changed_at), 900000000) = 0,
      o.created_at, o.created_at - INTERVAL 1 MICROSECOND), o.claim_epoch = COALESCE(o.claim_epoch, 0), o.sent_digest = {content},
    o.answer_to = v.answer_to,
    o.state = 'awaiting', o.lease_until = UTC_TIMESTAMP(6) + INTERVAL LEAST(v.delay_us, 315360000000000) MICROSECOND,
    o.attempt = v.attempt, o.failures = v.failures, o.recoveries = v.recoveries,
    o.published_at = COALESCE(v.published, o.published_at),
    o.progress = COALESCE(v.progress, o.progress), o.checkpoint = COALESCE(v.checkpoint, o.checkpoint)
WHERE {fence}
