-- Two daemons that live under one name. One that was started anew has the name of before: the other was not seen since.
SELECT a.host, a.pid, a.url, b.pid, b.url FROM `{table}_instances` a JOIN `{table}_instances` b ON b.host = a.host AND b.id <> a.id
WHERE a.kind = 'daemon' AND a.routes <> '' AND a.alive_until > UTC_TIMESTAMP(6)
  AND a.seen_at < UTC_TIMESTAMP(6) + INTERVAL 1 MINUTE
  AND b.kind = 'daemon' AND b.routes <> '' AND b.alive_until > UTC_TIMESTAMP(6)
  AND b.seen_at < UTC_TIMESTAMP(6) + INTERVAL 1 MINUTE AND b.started_at <= a.started_at AND b.seen_at > a.started_at
ORDER BY a.host, a.id LIMIT 1
