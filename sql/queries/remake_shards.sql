-- Rows of shards that somebody has deleted. Who held them may go on sending until it has noticed: nobody takes them for as
-- long as a lease, and then as after a crash. That of bound tasks has an epoch that never changes.
INSERT IGNORE INTO `{table}_shards` (shard, epoch, owner, lease_until, unclean)
SELECT gone.shard, gone.shard = 63, IF(gone.shard = 63, NULL, ''),
  IF(gone.shard = 63, NULL, UTC_TIMESTAMP(6) + INTERVAL {lease_us} MICROSECOND), gone.shard <> 63
FROM JSON_TABLE('[{shards}]', '$[*]' COLUMNS (shard INT UNSIGNED PATH '$')) AS gone
