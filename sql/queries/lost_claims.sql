-- Rows that were claimed under an earlier lease of their shard: whoever claimed them has lost it since. Nobody leases
-- the shard of bound tasks; there a claim is lost when the instance that wrote it lives no more. A missing row does not
-- say so (remake_instances.sql). A daemon of the task's host that lives takes it back itself: it has to know that the
-- task goes before the others of its order_key.
SELECT {columns} FROM `{table}` FORCE INDEX (ix_next)
WHERE state = 'claimed' AND shard IN ({shards})
  AND IF(shard = 63, (target_host = {host} OR NOT {host_lives}) AND (claimed_by IS NULL OR EXISTS (SELECT 1 FROM `{table}_instances` i
                                                   WHERE i.id = claimed_by
                                                     AND (i.alive_until <= UTC_TIMESTAMP(6)
                                                       OR i.seen_at >= UTC_TIMESTAMP(6) + INTERVAL 1 MINUTE))),
         COALESCE(claim_epoch, 0) < CASE shard {epochs} END)
LIMIT {limit}
