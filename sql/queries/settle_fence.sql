-- Whether every shard is still ours. Until our commit nobody can take one of them over.
SELECT shard, epoch FROM `{table}_shards` WHERE {leases} LOCK IN SHARE MODE
