-- The rows of a claim as they are after it.
SELECT {columns} FROM `{table}` FORCE INDEX (PRIMARY)
WHERE id IN ({ids}) AND state = 'claimed' AND shard IN ({shards}) AND claimed_by = {instance}
