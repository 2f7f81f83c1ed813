-- The number of shards the table was made with.
SELECT COUNT(*) FROM `{table}_shards` WHERE shard < 63
