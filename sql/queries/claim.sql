-- Recorded claims: the attempt counts from here on.
UPDATE `{table}` FORCE INDEX (PRIMARY)
SET state = 'claimed', attempt = attempt + 1, claimed_by = {instance},
    lease_until = UTC_TIMESTAMP(6) + INTERVAL (COALESCE(timeout_ms, {timeout_ms}) + {lease_ms}) * 1000 MICROSECOND
WHERE id IN ({ids}) AND state = 'scheduled' AND shard IN ({shards}) AND next_at <= UTC_TIMESTAMP(6) + INTERVAL {ahead_us} MICROSECOND
