-- What a group has next beyond that. LENGTH: as in next_due.
SELECT next_at FROM `{table}` FORCE INDEX (ix_next)
WHERE state = {state} AND shard = {shard} AND route = {route} AND priority = {priority}
  AND next_at > UTC_TIMESTAMP(6) + INTERVAL {ahead_us} MICROSECOND AND LENGTH(message_id) >= 0
ORDER BY next_at LIMIT 1
