-- A task that is due now. Run it in the transaction whose effect it tells of: both are committed, or neither.
START TRANSACTION;
INSERT INTO outbox (route, payload) VALUES ('orders.created', '{"order": 17}');
COMMIT;
