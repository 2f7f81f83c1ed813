-- Whether we hold a name, since when, and whether the lease of whoever holds it runs.
SELECT version = {id}, started_at, alive_until > UTC_TIMESTAMP(6) AND seen_at < UTC_TIMESTAMP(6) + INTERVAL 1 MINUTE
FROM `{table}_instances` WHERE id = {name}
