-- A living row by its message id, or by its row id when no message id is that number.
(SELECT id, shard, route, state + 0, {maybe_sent}, 1 AS choice, expires_at FROM `{table}` WHERE message_id = {message_id})
UNION ALL (SELECT id, shard, route, state + 0, {maybe_sent}, 2, expires_at FROM `{table}` WHERE id = {id}) ORDER BY choice LIMIT 1
