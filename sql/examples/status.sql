-- Where is the task of this order, and what happened to it?
SELECT message_id, route, state, attempt,
  COALESCE(first_due_at, due_at, created_at + INTERVAL LEAST(GREATEST(delay_ms, 0), 315360000000) * 1000 MICROSECOND) AS asked_due_at, next_at, published_at,
  NULL AS finished_at, error_class, last_error
FROM outbox WHERE task_key = 'order-17'
UNION ALL
SELECT message_id, route, state, attempt, due_at, NULL, published_at, finished_at, error_class, last_error
FROM outbox_history WHERE task_key = 'order-17'
ORDER BY asked_due_at;
