-- Which shards there are.
SELECT shard FROM `{table}_shards` ORDER BY shard
