-- What is about to come back to life, as it is now. The columns become the before image of the audit row.
SELECT id, message_id, state, shard, attempt, failures, due_at, finished_at, error_class, keep_until
FROM `{table}_history` WHERE id IN ({ids}) AND (id, keep_until) IN ({keys}) ORDER BY id FOR UPDATE
