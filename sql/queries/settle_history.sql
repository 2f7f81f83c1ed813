-- Finished rows into the history. due_at is there as it was first asked for.
INSERT {ignore} INTO `{table}_history`
  (id, message_id, route, payload, headers, task_key, due_at, priority, order_key, dedup_key, max_attempts, timeout_ms,
   expires_at, target_host, shard, created_at, state, attempt, failures, recoveries, revision, claimed_by, published_at,
   finished_at, error_class, last_error, progress, checkpoint, result, keep_until)
SELECT o.id, o.message_id, o.route, o.payload, o.headers, o.task_key,
  COALESCE(o.first_due_at, o.due_at, {o_by_delay}), o.priority, o.order_key, o.dedup_key, o.max_attempts, o.timeout_ms, o.expires_at, o.target_host, o.shard, o.created_at, v.state_to,
  v.attempt, v.failures, v.recoveries, o.revision,
  IF(v.outcome = 'cancel', o.claimed_by,
    COALESCE(o.claimed_by, (SELECT s.owner FROM `{table}_shards` s WHERE s.shard = o.shard))),
  COALESCE(v.published, o.published_at), UTC_TIMESTAMP(6), COALESCE(v.error_class, o.error_class),
  COALESCE(v.error, o.last_error), COALESCE(v.progress, o.progress), COALESCE(v.checkpoint, o.checkpoint), v.result,
  UTC_TIMESTAMP(6) + INTERVAL LEAST(v.keep_us, 3153600000000000) MICROSECOND
FROM JSON_TABLE({rows}, '$[*]' COLUMNS (
    id BIGINT UNSIGNED PATH '$[0]', state_from INT UNSIGNED PATH '$[1]', attempt_from INT UNSIGNED PATH '$[2]',
    shard INT UNSIGNED PATH '$[3]', state_to INT UNSIGNED PATH '$[4]', attempt INT UNSIGNED PATH '$[5]',
    failures INT UNSIGNED PATH '$[6]', recoveries INT UNSIGNED PATH '$[7]', published DATETIME(6) PATH '$[9]',
    keep_us BIGINT UNSIGNED PATH '$[10]', error_class VARCHAR(64) CHARACTER SET utf8mb4 PATH '$[11]',
    error TEXT CHARACTER SET utf8mb4 PATH '$[12]', progress DOUBLE PATH '$[13]',
    checkpoint MEDIUMTEXT CHARACTER SET utf8mb4 PATH '$[14]', result MEDIUMTEXT CHARACTER SET utf8mb4 PATH '$[15]',
    outcome VARCHAR(16) CHARACTER SET utf8mb4 PATH '$[18]',
    message_id VARCHAR(65) CHARACTER SET ascii COLLATE ascii_bin PATH '$[20]', changed_at DATETIME(6) PATH '$[21]')) v
STRAIGHT_JOIN `{table}` o FORCE INDEX (PRIMARY)
  ON o.id = v.id AND o.message_id = COALESCE(v.message_id, o.message_id) AND o.state + 0 = v.state_from AND o.attempt = v.attempt_from AND o.shard = v.shard
  AND (v.changed_at IS NULL OR o.changed_at = v.changed_at)
