-- Which of the shards are ours at the moment.
SELECT shard FROM `{table}_shards` WHERE {leases}
