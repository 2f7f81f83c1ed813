-- Which they were.
SELECT shard, epoch FROM `{table}_shards` WHERE owner = {owner} AND lease_until > UTC_TIMESTAMP(6)
