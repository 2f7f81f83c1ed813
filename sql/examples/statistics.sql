-- Success rate and duration by route over the last day, from the history. A route without `history` keeps its failures
-- only: where nothing is done the rate is NULL, not known.
SELECT route, COUNT(*) AS finished, NULLIF(SUM(state = 'done'), 0) / COUNT(*) AS success_rate,
  AVG(TIMESTAMPDIFF(MICROSECOND, published_at, finished_at)) / 1000 AS avg_ms_after_publishing,
  AVG(attempt) AS avg_attempts
FROM outbox_history WHERE finished_at >= UTC_TIMESTAMP(6) - INTERVAL 1 DAY GROUP BY route ORDER BY route;
