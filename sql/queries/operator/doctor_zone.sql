-- Among the latest tasks that said when they are due, inserted within an hour: how many, how many were due long before
-- they were inserted, and how many within an hour after the zone offset {offset} (in seconds) had passed: of the route
-- that has the most of those.
SELECT COUNT(*), SUM(wait < -600) AS past, SUM(wait BETWEEN {offset} - 60 AND {offset} + 3600) AS shifted, route
FROM (
  SELECT route, TIMESTAMPDIFF(SECOND, created_at, COALESCE(first_due_at, due_at)) AS wait FROM (
    SELECT route, created_at, first_due_at, due_at, delay_ms FROM `{table}` ORDER BY id DESC LIMIT 1000
  ) AS living WHERE created_at > UTC_TIMESTAMP(6) - INTERVAL 1 HOUR AND delay_ms = 0 AND due_at <> created_at
  UNION ALL
  SELECT route, TIMESTAMPDIFF(SECOND, created_at, due_at) FROM (
    SELECT route, created_at, due_at FROM `{table}_history` ORDER BY id DESC LIMIT 1000
  ) AS finished WHERE created_at > UTC_TIMESTAMP(6) - INTERVAL 1 HOUR AND due_at <> created_at
) AS latest GROUP BY route ORDER BY past DESC, shifted DESC LIMIT 1
