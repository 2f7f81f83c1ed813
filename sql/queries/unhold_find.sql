-- Held rows of a route, by the index alone.
SELECT id FROM `{table}` FORCE INDEX (ix_next)
WHERE state = 'held' AND shard = {shard} AND route = {route} LIMIT {limit}
