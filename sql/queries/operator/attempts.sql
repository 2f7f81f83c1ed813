-- What became of the attempts of one task, oldest first.
SELECT attempt, kind, outcome, claimed_by, due_at, published_at, finished_at, error_class, error, result
FROM `{table}_attempts` WHERE message_id = {message_id} ORDER BY attempt, seq
