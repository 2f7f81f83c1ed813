-- How many shards there are, are held, and were left without being given back.
SELECT COUNT(*), COALESCE(SUM(owner IS NOT NULL AND {lease_runs}), 0), COALESCE(SUM(owner IS NOT NULL AND NOT {lease_runs}), 0)
FROM `{table}_shards` WHERE shard < 63
