-- Who has said lately that it runs.
SELECT id, kind, host, url, version, pid, started_at, seen_at, alive_until > UTC_TIMESTAMP(6) AND seen_at < UTC_TIMESTAMP(6) + INTERVAL 1 MINUTE AS alive
FROM `{table}_instances` WHERE host <> '' ORDER BY alive DESC, id
