-- Whole rows by id, as far as they are still to be looked at.
SELECT {columns} FROM `{table}` FORCE INDEX (PRIMARY)
WHERE {host} AND id IN ({ids}) AND state = {state} AND shard IN ({shards}) AND next_at <= UTC_TIMESTAMP(6) + INTERVAL {ahead_us} MICROSECOND
