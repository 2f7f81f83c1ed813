-- Rows that are claimed in our name.
SELECT {columns} FROM `{table}` FORCE INDEX (ix_next)
WHERE state = 'claimed' AND shard IN ({shards}) AND claimed_by = {instance} AND id > {after}
ORDER BY id LIMIT {limit}
