-- An address that several living daemons have: it leads to one of them. One that was started anew has the name of before.
SELECT url, GROUP_CONCAT(DISTINCT host ORDER BY host SEPARATOR ', ') FROM `{table}_instances`
WHERE kind = 'daemon' AND url <> '' AND alive_until > UTC_TIMESTAMP(6) AND seen_at < UTC_TIMESTAMP(6) + INTERVAL 1 MINUTE
GROUP BY url HAVING COUNT(DISTINCT host) > 1 ORDER BY url LIMIT 1
