-- Tasks that ended dead within a day, per route, among the latest {cap} of all: how many, when the last, and its class.
SELECT route, COUNT(*), MAX(finished_at), SUBSTRING_INDEX(GROUP_CONCAT(error_class ORDER BY finished_at DESC), ',', 1)
FROM (
  SELECT route, finished_at, error_class FROM `{table}_history` FORCE INDEX (ix_state_finished)
  WHERE state = 'dead' AND finished_at > UTC_TIMESTAMP(6) - INTERVAL 1 DAY ORDER BY finished_at DESC LIMIT {cap}
) AS latest GROUP BY route ORDER BY COUNT(*) DESC, route
