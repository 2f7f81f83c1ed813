-- Due rows of a group, by the index alone.
SELECT id FROM `{table}` FORCE INDEX (ix_next)
WHERE state = {state} AND shard = {shard} AND route = {route} AND priority = {priority}
  AND next_at <= UTC_TIMESTAMP(6) AND (next_at > {after_at} OR next_at = {after_at} AND id > {after_id})
ORDER BY next_at, id LIMIT {limit}
