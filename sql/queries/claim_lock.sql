-- Which of the rows can be claimed now: those that are still what they were judged by, and not those that another
-- transaction holds, they are met again later.
SELECT id FROM `{table}` FORCE INDEX (PRIMARY)
WHERE id IN ({ids}) AND (id, message_id) IN ({rows}) AND state = 'scheduled' AND route = {route}
  AND shard IN ({shards}) AND move_to_shard IS NULL AND move_to_host IS NULL AND target_host IN ('', {host}) AND next_at <= UTC_TIMESTAMP(6) + INTERVAL {ahead_us} MICROSECOND
ORDER BY id FOR UPDATE SKIP LOCKED
