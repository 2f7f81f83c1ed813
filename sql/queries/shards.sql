-- Who holds which shard, and whether the lease still runs.
SELECT shard, epoch, owner, owner IS NULL OR lease_until <= UTC_TIMESTAMP(6), unclean
FROM `{table}_shards` WHERE shard < 63 ORDER BY shard
