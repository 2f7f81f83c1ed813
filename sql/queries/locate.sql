-- Living rows by their message ids, or by their row ids when no message id is that number.
(SELECT id, shard, route, state + 0, {maybe_sent}, 1 AS choice, expires_at, message_id, LENGTH(payload)
  FROM `{table}` WHERE message_id IN ({message_ids}))
UNION ALL (SELECT id, shard, route, state + 0, {maybe_sent}, 2, expires_at, message_id, LENGTH(payload)
  FROM `{table}` WHERE id IN ({ids})) ORDER BY choice
