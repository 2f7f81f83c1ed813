-- Claims of bound tasks, whose shard nobody leases: one is lost when the instance that wrote it lives no more. A daemon of
-- the task's host that lives takes it back itself: it has to know that the task goes before the others of its order_key.
SELECT {columns} FROM `{table}` FORCE INDEX (ix_next)
WHERE state = 'claimed' AND shard = 63 AND (target_host = {host} OR NOT {host_lives}) AND {claimer_gone}
LIMIT {limit}
