-- The customer got ten minutes more. first_due_at = NULL makes this the time that lateness counts from, after a retry too.
UPDATE outbox SET due_at = due_at + INTERVAL 10 MINUTE, first_due_at = NULL
WHERE task_key = 'order-17' AND route = 'orders.cancel' AND state = 'scheduled';
