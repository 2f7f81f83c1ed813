-- Who holds a shard, and where it listens.
SELECT s.owner, s.lease_until, COALESCE(s.lease_until > UTC_TIMESTAMP(6), FALSE) AS alive, i.host, i.url
FROM `{table}_shards` AS s LEFT JOIN `{table}_instances` AS i ON i.id = s.owner WHERE s.shard = {shard}
