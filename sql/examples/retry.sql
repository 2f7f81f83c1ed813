-- Dead tasks of a route come back: due now, with a fresh budget. The message id stays and attempts go on counting, so no
-- consumer sees a number twice. This changed_at says that nobody has changed them since they were sent last: leave it out,
-- with its value, where you change what comes back.
START TRANSACTION;
INSERT INTO outbox (id, message_id, route, payload, headers, task_key, due_at, priority, order_key, dedup_key, max_attempts,
  timeout_ms, target_host, shard, created_at, changed_at, attempt, revision, error_class, last_error, progress, checkpoint)
SELECT id, message_id, route, payload, headers, task_key, UTC_TIMESTAMP(6), priority, order_key, dedup_key, max_attempts,
  timeout_ms, target_host, shard, created_at, created_at - INTERVAL 1 MICROSECOND, attempt, revision, error_class,
  last_error, progress, checkpoint
FROM outbox_history WHERE state = 'dead' AND route = 'crm.push' FOR UPDATE;
DELETE FROM outbox_history WHERE state = 'dead' AND route = 'crm.push';
COMMIT;
