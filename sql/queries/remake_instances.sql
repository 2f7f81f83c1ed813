-- Instances that have claims of bound tasks and whose row is missing: deleted by hand, or not in a restored backup. One
-- that lives corrects its row with its next beat, and only one that does not is dead when this time is over.
INSERT IGNORE INTO `{table}_instances` (id, host, alive_until)
SELECT DISTINCT claimed_by, COALESCE(target_host, ''), UTC_TIMESTAMP(6) + INTERVAL {ttl_us} MICROSECOND
FROM `{table}` FORCE INDEX (ix_next)
WHERE state = 'claimed' AND shard = 63 AND claimed_by IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM `{table}_instances` i WHERE i.id = claimed_by)
