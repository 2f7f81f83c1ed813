-- Rows of a group that the schema does not allow, due or not: all of them, or those that have no due time, or one before any that
-- can be read: the ordinary read of the group does not come to them.
SELECT {columns} FROM `{table}` FORCE INDEX (ix_next)
WHERE state = {state} AND shard = {shard} AND route = {route} AND priority = {priority}
  AND ({all} OR next_at IS NULL OR next_at < '1970-01-01 00:00:00') LIMIT {limit}
