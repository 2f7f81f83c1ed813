-- Which of the rows can be claimed now: not those that another transaction holds, they are met again later.
SELECT id FROM `{table}` FORCE INDEX (PRIMARY)
WHERE id IN ({ids}) AND state = 'scheduled' AND shard IN ({shards}) AND next_at <= UTC_TIMESTAMP(6) + INTERVAL {ahead_us} MICROSECOND
ORDER BY id FOR UPDATE SKIP LOCKED
