-- At a time. Times are UTC whatever the session's time zone is: UTC_TIMESTAMP(6), never NOW().
-- Give up when it could not be done by the evening; hand the trace on to the consumer.
INSERT INTO outbox (route, payload, due_at, expires_at, priority, headers)
VALUES ('invoice.send', '{"invoice": 4}', UTC_TIMESTAMP(6) + INTERVAL 2 HOUR, UTC_TIMESTAMP(6) + INTERVAL 12 HOUR, 9,
        '{"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}');
