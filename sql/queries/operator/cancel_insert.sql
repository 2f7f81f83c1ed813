-- Cancelled tasks go to the history. due_at there is the time that was asked for; what may have been sent can be
-- told there too, and when it comes back: it has had an attempt, or recoveries say so.
INSERT INTO `{table}_history` (id, message_id, route, payload, headers, task_key, due_at, priority, order_key, dedup_key,
  max_attempts, timeout_ms, expires_at, target_host, shard, created_at, state, attempt, failures, recoveries, revision,
  claimed_by, published_at, finished_at, error_class, last_error, progress, checkpoint, keep_until)
SELECT id, message_id, route, payload, headers, task_key, COALESCE(first_due_at, due_at, {by_delay}),
  priority, order_key, dedup_key,
  max_attempts, timeout_ms, expires_at, target_host, shard, created_at, 'cancelled', attempt, failures,
  IF(attempt = 0 AND {maybe_sent}, GREATEST(recoveries, 1), recoveries), revision,
  claimed_by, published_at, UTC_TIMESTAMP(6), error_class, last_error, progress, checkpoint,
  UTC_TIMESTAMP(6) + INTERVAL {keep_us} MICROSECOND
FROM `{table}` WHERE id IN ({ids}) ORDER BY id
