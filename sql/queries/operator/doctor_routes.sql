-- How many different sets of routes the living daemons have; those that end have none.
SELECT COUNT(DISTINCT NULLIF(routes, '[]')), GROUP_CONCAT(DISTINCT host ORDER BY host SEPARATOR ', ')
FROM `{table}_instances` WHERE kind = 'daemon' AND routes <> '' AND alive_until > UTC_TIMESTAMP(6)
  AND seen_at < UTC_TIMESTAMP(6) + INTERVAL 1 MINUTE
