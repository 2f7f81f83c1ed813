-- Claims of bound tasks, whose shard nobody leases: one is lost when the instance that wrote it lives no more. A missing
-- row does not say so (remake_instances.sql). A daemon of the task's host that lives takes it back itself: it has to
-- know that the task goes before the others of its order_key.
SELECT {columns} FROM `{table}` FORCE INDEX (ix_next)
WHERE state = 'claimed' AND shard = 63 AND (target_host = {host} OR NOT {host_lives})
  AND (claimed_by IS NULL OR EXISTS (
    SELECT 1 FROM `{table}_instances` i WHERE i.id = claimed_by
      AND (i.alive_until <= UTC_TIMESTAMP(6) OR i.seen_at >= UTC_TIMESTAMP(6) + INTERVAL 1 MINUTE)))
LIMIT {limit}
