-- Routes with tasks that would be sent, now or when they are taken back, and since when the oldest is due. One seek for
-- each group of the index.
SELECT route, NULLIF(MIN(IF(state = 'scheduled', first_at, NULL)), '2000-01-01 00:00:00') FROM (
  SELECT state, shard, route, priority, MIN(next_at) AS first_at FROM `{table}` FORCE INDEX (ix_next)
  WHERE state = 'scheduled' GROUP BY state, shard, route, priority
  UNION ALL
  SELECT state, shard, route, priority, MIN(next_at) FROM `{table}` FORCE INDEX (ix_next)
  WHERE state = 'claimed' GROUP BY state, shard, route, priority
  UNION ALL
  SELECT state, shard, route, priority, MIN(next_at) FROM `{table}` FORCE INDEX (ix_next)
  WHERE state = 'awaiting' GROUP BY state, shard, route, priority
) AS index_groups WHERE state <> 'scheduled' OR first_at <= UTC_TIMESTAMP(6)
GROUP BY route ORDER BY 2 IS NULL, 2, route LIMIT {cap}
