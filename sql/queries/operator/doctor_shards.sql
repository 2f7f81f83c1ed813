-- Who holds which shard: whether its owner's lease runs, or has ended without being given back; and whether
-- its epoch is one that no daemon writes.
SELECT shard, COALESCE(owner, '') <> '' AND {lease_runs}, COALESCE(owner, '') <> '' AND NOT {lease_runs}, epoch > 9223372036854775807 FROM `{table}_shards` WHERE shard < 64
