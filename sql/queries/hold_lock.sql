-- Those of the rows that nobody else holds; nobody changes them until our commit.
SELECT id, route FROM `{table}` FORCE INDEX (PRIMARY)
WHERE id IN ({ids}) AND state = {from} AND shard = {shard} AND route IN ({routes}) ORDER BY id FOR UPDATE SKIP LOCKED
