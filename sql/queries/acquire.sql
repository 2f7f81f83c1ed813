-- Compare-and-set: the epoch is as it was seen, and nobody's lease runs. The new one is higher than any before, also where
-- the row was deleted or restored from a backup since: no shard is taken a thousand times a second.
-- Who has vanished may have sent what was due by now: remembered first, since assignments see those before them.
UPDATE `{table}_shards`
SET abandoned_at = IF(unclean, {abandoned_until}, abandoned_at),
    epoch = GREATEST(epoch + 1, TIMESTAMPDIFF(MICROSECOND, '2000-01-01', UTC_TIMESTAMP(6)) DIV 1000), owner = {owner},
    unclean = TRUE, lease_until = UTC_TIMESTAMP(6) + INTERVAL {lease_us} MICROSECOND
WHERE shard = {shard} AND epoch = {epoch} AND
  (owner IS NULL OR NOT {lease_runs})
