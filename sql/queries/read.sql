-- Whole rows of a group that are due, or will be in a moment, from a position on: a range of the index, in its order.
SELECT {columns} FROM `{table}` FORCE INDEX (ix_next)
WHERE state = {state} AND shard = {shard} AND route = {route} AND priority = {priority}
  AND next_at <= UTC_TIMESTAMP(6) + INTERVAL {ahead_us} MICROSECOND AND (next_at > {after_at} OR next_at = {after_at} AND id > {after_id})
ORDER BY next_at, id LIMIT {limit}
