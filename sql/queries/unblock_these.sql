-- Those of the rows that are blocked.
SELECT id FROM `{table}` FORCE INDEX (PRIMARY)
WHERE id IN ({ids}) AND state = 'blocked' AND shard = {shard} AND route = {route}
