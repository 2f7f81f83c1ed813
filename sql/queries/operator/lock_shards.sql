-- Keeps daemons from taking these shards until the commit, and says who has them.
SELECT shard, COALESCE(owner, '') <> '' AS owned, COALESCE({lease_runs}, FALSE) AS alive FROM `{table}_shards` WHERE shard IN ({shards}) ORDER BY shard FOR UPDATE
