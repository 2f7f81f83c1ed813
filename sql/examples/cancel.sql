-- The order was paid: its task is not needed any more. In the transaction that takes the payment.
-- No row changed: it is over, or its claim is recorded. One row changed is no proof that nothing left: with memory claims a
-- copy may be on its way. `duebox task cancel`, the HTTP API and routes with `claim: recorded` give a sure answer.
DELETE FROM outbox WHERE task_key = 'order-17' AND route = 'orders.cancel' AND state = 'scheduled';
