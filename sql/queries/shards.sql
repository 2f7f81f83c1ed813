-- Who holds which shard, and whether it is free. Whatever a hand has written into a row, it is a row like the others: a
-- number of shard that there is none of is no shard.
SELECT shard, epoch, owner, owner IS NULL OR NOT {lease_runs}, unclean <> 0 FROM `{table}_shards` WHERE shard < 64 ORDER BY shard
