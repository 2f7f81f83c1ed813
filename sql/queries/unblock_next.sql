-- The next blocked rows of a route in the order of the index.
SELECT id FROM `{table}` FORCE INDEX (ix_next)
WHERE state = 'blocked' AND shard = {shard} AND route = {route}
  AND (priority > {priority} OR priority = {priority} AND (next_at > {after_at} OR next_at = {after_at} AND id > {after_id}))
ORDER BY priority, next_at, id LIMIT {limit}
