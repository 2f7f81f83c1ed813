-- Cancel the order in 30 minutes unless it is paid. The delay counts from this statement, by the server's clock.
-- task_key finds the task again; dedup_key refuses a second one while this one lives (error 1062;
-- the transaction goes on).
INSERT INTO outbox (route, task_key, dedup_key, payload, delay_ms)
VALUES ('orders.cancel', 'order-17', 'cancel order-17', '{"order": 17}', 30 * 60 * 1000);
