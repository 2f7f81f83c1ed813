-- Another daemon that lives under our name, and was seen after we had begun: one that had it before us, and died, was not.
SELECT o.id, o.pid, o.url FROM `{table}_instances` me JOIN `{table}_instances` o ON o.host = me.host AND o.id <> me.id
WHERE me.id = {id} AND o.kind = 'daemon' AND o.routes <> '' AND o.alive_until > UTC_TIMESTAMP(6)
  AND o.seen_at < UTC_TIMESTAMP(6) + INTERVAL 1 MINUTE AND o.seen_at > me.started_at
ORDER BY o.id LIMIT 1
