-- The next ended tasks to change, by rising id, or the newest one.
SELECT id, message_id, state, shard, NULL, attempt > 0 OR recoveries > 0, FALSE, NULL, NULL FROM `{table}_history` {hint}
WHERE id > {after} AND {where} ORDER BY id {order} LIMIT {limit}
