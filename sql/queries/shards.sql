-- Who holds which shard, and whether the lease still runs. No lease is as long as eleven minutes: one that ends later was
-- written before the server's clock was put back, and a living owner would have renewed it since.
SELECT shard, epoch, owner,
  owner IS NULL OR lease_until <= UTC_TIMESTAMP(6) OR lease_until > UTC_TIMESTAMP(6) + INTERVAL 11 MINUTE, unclean
FROM `{table}_shards` WHERE shard < 63 ORDER BY shard
