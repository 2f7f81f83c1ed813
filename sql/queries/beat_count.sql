-- Daemons that live: the shards are shared out among them, but for those that end, which have no routes. And whether they
-- have the same routes; old ones do not tell.
-- One that was seen later than now was seen before the server's clock was put back; none says that it lives for as long
-- as 11 minutes (engine.lease is 10 at most): a hand has written that, and shards would be kept for nobody.
SELECT COUNT(*), COUNT(DISTINCT NULLIF(routes, '[]')) FROM `{table}_instances`
WHERE kind = 'daemon' AND routes <> '' AND alive_until > UTC_TIMESTAMP(6) AND seen_at < UTC_TIMESTAMP(6) + INTERVAL 1 MINUTE
  AND alive_until <= UTC_TIMESTAMP(6) + INTERVAL 11 MINUTE
