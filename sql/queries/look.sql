-- The earliest row of every group: a loose index scan, one seek per group however many rows there are. The time comes
-- with it, also where there is no group.
SELECT now.at, found.state, found.shard, CAST(found.route AS BINARY), found.priority, found.next_at FROM (SELECT UTC_TIMESTAMP(6) AS at) AS now
LEFT JOIN (SELECT state + 0 AS state, shard, route, priority, MIN(next_at) AS next_at FROM `{table}` FORCE INDEX (ix_next)
           WHERE state IN ({states}) AND shard IN ({shards}) AND {routes}
           GROUP BY state, shard, route, priority LIMIT {limit}) AS found ON TRUE
