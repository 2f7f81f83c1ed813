-- Rows as they are now, and nobody else changes them until our commit: in primary-key order.
SELECT id, shard, state + 0, attempt, CAST(message_id AS BINARY), changed_at FROM `{table}` FORCE INDEX (PRIMARY) WHERE id IN ({ids}) ORDER BY id FOR UPDATE {skip}
