-- Success rate and duration by route over the last day, from the history (routes that keep one).
SELECT route, COUNT(*) AS finished, SUM(state = 'done') / COUNT(*) AS success_rate,
  AVG(TIMESTAMPDIFF(MICROSECOND, published_at, finished_at)) / 1000 AS avg_ms_after_publishing,
  AVG(attempt) AS avg_attempts
FROM outbox_history WHERE finished_at >= UTC_TIMESTAMP(6) - INTERVAL 1 DAY GROUP BY route ORDER BY route;
