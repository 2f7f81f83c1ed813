-- Dead tasks of a route come back: due now, with a fresh budget. The message id stays and attempts go on counting, so no
-- consumer sees a number twice.
START TRANSACTION;
INSERT INTO outbox (id, message_id, route, payload, headers, task_key, due_at, priority, order_key, dedup_key, max_attempts,
  timeout_ms, target_host, shard, created_at, attempt, revision, error_class, last_error, progress, checkpoint)
SELECT id, message_id, route, payload, headers, task_key, UTC_TIMESTAMP(6), priority, order_key, dedup_key, max_attempts,
  timeout_ms, target_host, shard, created_at, attempt, revision, error_class, last_error, progress, checkpoint
FROM outbox_history WHERE state = 'dead' AND route = 'crm.push' FOR UPDATE;
DELETE FROM outbox_history WHERE state = 'dead' AND route = 'crm.push';
COMMIT;
