-- Rows of many routes, by the index alone: a seek for each route, and no row that is not due.
SELECT id FROM `{table}` FORCE INDEX (ix_next)
WHERE state = {state} AND shard = {shard} AND route IN ({routes}) AND priority = {priority}
  AND next_at <= UTC_TIMESTAMP(6) + INTERVAL {ahead_us} MICROSECOND LIMIT {limit}
