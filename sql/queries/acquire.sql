-- Compare-and-set: the epoch is as it was seen, and nobody's lease runs.
UPDATE `{table}_shards`
SET epoch = epoch + 1, owner = {owner}, unclean = TRUE,
    lease_until = UTC_TIMESTAMP(6) + INTERVAL {lease_us} MICROSECOND
WHERE shard = {shard} AND epoch = {epoch} AND
  (owner IS NULL OR NOT {lease_runs})
