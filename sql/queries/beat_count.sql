-- Daemons that live: the shards are shared out among them. And whether they have the same routes; old ones do not tell.
SELECT COUNT(*), COUNT(DISTINCT NULLIF(routes, '[]')) FROM `{table}_instances`
WHERE kind = 'daemon' AND alive_until > UTC_TIMESTAMP(6)
