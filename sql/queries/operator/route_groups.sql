-- Which routes have living rows in which state, and the earliest time of each; a loose index scan of ix_next.
SELECT route, state, MIN(next_at) FROM (
  SELECT state, shard, route, priority, MIN(next_at) AS next_at FROM `{table}` FORCE INDEX (ix_next)
  GROUP BY state, shard, route, priority
) AS index_groups GROUP BY route, state
