-- The order was paid: its task is not needed any more. In the transaction that takes the payment.
-- No row changed: it has been handed over already, or its claim is recorded.
DELETE FROM outbox WHERE task_key = 'order-17' AND route = 'orders.cancel' AND state = 'scheduled';
