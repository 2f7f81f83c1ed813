-- How late tasks of the last hour were handed over, by route, in milliseconds.
SELECT route, COUNT(*) AS tasks, MIN(late_ms) AS earliest, MAX(IF(place <= 0.5, late_ms, NULL)) AS p50,
  MAX(IF(place <= 0.99, late_ms, NULL)) AS p99, MAX(late_ms) AS latest
FROM (SELECT route, TIMESTAMPDIFF(MICROSECOND, due_at, published_at) / 1000 AS late_ms,
        PERCENT_RANK() OVER (PARTITION BY route ORDER BY TIMESTAMPDIFF(MICROSECOND, due_at, published_at)) AS place
      FROM outbox_history
      WHERE finished_at >= UTC_TIMESTAMP(6) - INTERVAL 1 HOUR AND published_at IS NOT NULL) ranked
GROUP BY route ORDER BY route;
