-- Which of the rows have an expires_at that has come.
SELECT id FROM `{table}` FORCE INDEX (PRIMARY)
WHERE id IN ({ids}) AND state = {state} AND shard = {shard} AND expires_at <= UTC_TIMESTAMP(6)
