-- Ended tasks come back: due now, a fresh budget, the attempt goes on counting so that no consumer sees a number twice.
-- recoveries stay where nothing else says that it may have been sent.
-- One whose id is for no row any more has the next one.
-- Where one died because no result came, nobody has changed it since its last attempt, whose late success counts; of
-- others nobody knows (result_lock.sql).
INSERT INTO `{table}` (id, message_id, route, payload, headers, task_key, due_at, priority, order_key, dedup_key,
  max_attempts, timeout_ms, expires_at, target_host, shard, created_at, changed_at, attempt, recoveries, revision, error_class,
  last_error, progress, checkpoint)
SELECT IF({other_id}, NULL, id), message_id, route, payload, headers, task_key, UTC_TIMESTAMP(6), priority, order_key, dedup_key,
  max_attempts, timeout_ms, IF(expires_at > UTC_TIMESTAMP(6), expires_at, NULL), target_host, shard, created_at,
  IF(state = 'dead' AND error_class = 'result.timeout', created_at - INTERVAL 1 MICROSECOND, UTC_TIMESTAMP(6)),
  attempt, IF(attempt = 0, recoveries, 0), revision, error_class, last_error, progress, checkpoint
FROM `{table}_history` WHERE id IN ({ids}) AND (id, keep_until) IN ({keys}) ORDER BY id
