-- Dead tasks per route among the latest {cap} of all.
SELECT route, COUNT(*) FROM (
  SELECT route FROM `{table}_history` WHERE state = 'dead' ORDER BY finished_at DESC LIMIT {cap}
) AS latest GROUP BY route
