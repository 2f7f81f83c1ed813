-- The same, with the task kept in the history as cancelled for 30 days. As with cancel.sql, a copy may be on its way.
START TRANSACTION;
INSERT INTO outbox_history (id, message_id, route, payload, headers, task_key, due_at, priority, order_key, dedup_key,
  max_attempts, timeout_ms, expires_at, target_host, shard, created_at, state, attempt, failures, recoveries, revision,
  published_at, finished_at, error_class, last_error, progress, checkpoint, keep_until)
SELECT id, message_id, route, payload, headers, task_key, COALESCE(first_due_at, due_at), priority, order_key, dedup_key,
  max_attempts, timeout_ms, expires_at, target_host, shard, created_at, 'cancelled', attempt, failures, recoveries, revision,
  published_at, UTC_TIMESTAMP(6), error_class, last_error, progress, checkpoint, UTC_TIMESTAMP(6) + INTERVAL 30 DAY
FROM outbox WHERE task_key = 'order-17' AND route = 'orders.cancel' AND state = 'scheduled' FOR UPDATE;
DELETE FROM outbox WHERE task_key = 'order-17' AND route = 'orders.cancel' AND state = 'scheduled';
COMMIT;
