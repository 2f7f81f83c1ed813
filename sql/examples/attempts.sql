-- What each attempt of a task came to.
SELECT attempt, kind, outcome, claimed_by, published_at, finished_at, error_class, error, result
FROM outbox_attempts WHERE message_id = 'd2f5b6de-63b4-11ef-9c7e-0242ac120002' ORDER BY seq;
