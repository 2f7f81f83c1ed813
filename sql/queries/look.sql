-- The earliest row of every group: a loose index scan, one seek per group however many rows there are. The time comes
-- with it, also where there is no group.
SELECT now.at, found.* FROM (SELECT UTC_TIMESTAMP(6) AS at) AS now
LEFT JOIN (SELECT state + 0, shard, route, priority, MIN(next_at) FROM `{table}` FORCE INDEX (ix_next)
           WHERE state IN ({states}) AND shard IN ({shards}) AND {routes}
           GROUP BY state, shard, route, priority LIMIT {limit}) AS found ON TRUE
