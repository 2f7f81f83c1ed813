-- Rows that were claimed under an earlier lease of their shard: whoever claimed them has lost it since.
SELECT {columns} FROM `{table}` FORCE INDEX (ix_next)
WHERE state = 'claimed' AND shard IN ({shards}) AND COALESCE(claim_epoch, 0) < CASE shard {epochs} END
LIMIT {limit}
