-- The order was paid: its task is not needed any more. In the transaction that takes the payment.
-- No row changed: it is over, or its claim is recorded. One row changed is no proof that nothing left: with memory claims a
-- copy may be on its way; outbox_attempts then has a line of it soon after, sent_then_removed. `duebox task cancel` and the HTTP API give a sure answer:
-- they also say of a task that has had an attempt, or that a daemon which died had, that it may have been sent. With
-- `claim: recorded`, AND attempt = 0 leaves out what may have left before.
-- It may meet the daemon at the due time and be the victim of a deadlock (error 1213): repeat the transaction, or read the
-- ids first and delete by id, which locks in the daemon's order (docs/CLIENTS.md).
DELETE FROM outbox WHERE task_key = 'order-17' AND route = 'orders.cancel' AND state = 'scheduled';
