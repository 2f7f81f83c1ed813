-- The same, with the task kept in the history as cancelled for 30 days. As with cancel.sql, a copy may be on its way.
-- Only what was copied is deleted: it has this finished_at. The LIMIT is for sessions with
-- sql_safe_updates, to which MariaDB may refuse the DELETE otherwise.
SET @cancelled_at = UTC_TIMESTAMP(6);
START TRANSACTION;
INSERT INTO outbox_history (id, message_id, route, payload, headers, task_key, due_at, priority, order_key, dedup_key,
  max_attempts, timeout_ms, expires_at, target_host, shard, created_at, state, attempt, failures, recoveries, revision,
  published_at, finished_at, error_class, last_error, progress, checkpoint, keep_until)
SELECT id, message_id, route, payload, headers, task_key,
  COALESCE(first_due_at, due_at, created_at + INTERVAL LEAST(GREATEST(delay_ms, 0), 315360000000) * 1000 MICROSECOND), priority, order_key, dedup_key,
  max_attempts, timeout_ms, expires_at, target_host, shard, created_at, 'cancelled', attempt, failures, recoveries, revision,
  published_at, @cancelled_at, error_class, last_error, progress, checkpoint, @cancelled_at + INTERVAL 30 DAY
FROM outbox WHERE task_key = 'order-17' AND route = 'orders.cancel' AND state = 'scheduled' FOR UPDATE;
DELETE FROM outbox WHERE task_key = 'order-17' AND route = 'orders.cancel' AND state = 'scheduled' AND EXISTS (
  SELECT 1 FROM outbox_history h
  WHERE h.id = outbox.id AND h.message_id = outbox.message_id AND h.finished_at = @cancelled_at)
LIMIT 1000000000;
COMMIT;
