-- Who holds which shard, and whether it is free.
SELECT shard, epoch, owner, owner IS NULL OR NOT {lease_runs}, unclean FROM `{table}_shards` ORDER BY shard
