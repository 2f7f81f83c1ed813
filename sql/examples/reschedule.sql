-- The customer got ten minutes more. due_at is NULL where a client wrote NULL for it: such a task is due delay_ms after
-- created_at. first_due_at = NULL makes this the time that lateness counts from, after a retry too.
UPDATE outbox
SET due_at = COALESCE(due_at, created_at + INTERVAL LEAST(GREATEST(delay_ms, 0), 315360000000) * 1000 MICROSECOND) + INTERVAL 10 MINUTE, first_due_at = NULL
WHERE task_key = 'order-17' AND route = 'orders.cancel' AND state = 'scheduled';
