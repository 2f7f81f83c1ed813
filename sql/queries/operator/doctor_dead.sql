-- Tasks that ended dead within a day, per route, among the latest {cap} of all: how many, when the last, and its class.
SELECT route, COUNT(*), MAX(finished_at), SUBSTR(MAX(CONCAT(finished_at, error_class)), 27)
FROM (
  SELECT route, finished_at, error_class FROM `{table}_history` FORCE INDEX (ix_state_finished)
  WHERE state = 'dead' AND finished_at > UTC_TIMESTAMP(6) - INTERVAL 1 DAY ORDER BY finished_at DESC LIMIT {cap}
) AS latest GROUP BY route ORDER BY COUNT(*) DESC, route
