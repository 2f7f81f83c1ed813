-- The task in that state that is overdue for longest, in microseconds; routes that are paused do not count.
SELECT TIMESTAMPDIFF(MICROSECOND, MIN(next_at), UTC_TIMESTAMP(6)) FROM (
  SELECT state, shard, route, priority, MIN(next_at) AS next_at FROM `{table}` FORCE INDEX (ix_next)
  WHERE state = {state} AND next_at >= '1970-01-01' AND next_at <> '2000-01-01' GROUP BY state, shard, route, priority
) AS index_groups WHERE route NOT IN (SELECT route FROM `{table}_routes` WHERE paused)
