-- Who holds which shard: whether its owner's lease runs, or has ended without being given back.
SELECT shard, COALESCE(owner, '') <> '' AND {lease_runs}, COALESCE(owner, '') <> '' AND NOT {lease_runs} FROM `{table}_shards`
