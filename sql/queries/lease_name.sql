-- Names are leased, each in a row that has the name as its id and who holds it as its version. That of a daemon: of two of
-- one name one alone runs what is bound to it. That of an entry of results: a daemon of this outbox reads it. The lease
-- is renewed, or taken when it has run out: what was assigned before counts in what follows. started_at says since when
-- the holder has had it without a gap. Only daemons and commands have a host.
INSERT INTO `{table}_instances` (id, host, routes, version, pid, alive_until)
VALUES ({name}, '', '', {id}, {pid}, UTC_TIMESTAMP(6) + INTERVAL {ttl_us} MICROSECOND)
ON DUPLICATE KEY UPDATE
  started_at = IF(version = {id} OR alive_until > UTC_TIMESTAMP(6) AND seen_at < UTC_TIMESTAMP(6) + INTERVAL 1 MINUTE,
    started_at, UTC_TIMESTAMP(6)),
  version = IF(alive_until > UTC_TIMESTAMP(6) AND seen_at < UTC_TIMESTAMP(6) + INTERVAL 1 MINUTE, version, {id}),
  pid = IF(version = {id}, {pid}, pid),
  seen_at = IF(version = {id}, UTC_TIMESTAMP(6), seen_at),
  alive_until = IF(version = {id}, UTC_TIMESTAMP(6) + INTERVAL {ttl_us} MICROSECOND, alive_until)
