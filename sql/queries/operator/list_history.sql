-- Ended tasks, newest first. An id can stand here twice (an auto-increment restarted by a failover), hence {until}.
SELECT id, message_id, route, task_key, state, priority, shard, attempt, failures, recoveries, max_attempts, timeout_ms,
  due_at, NULL AS first_due_at, expires_at, NULL AS lease_until, published_at, finished_at, created_at, keep_until,
  order_key, dedup_key, target_host, claimed_by, error_class, last_error, progress
FROM `{table}_history` {hint} WHERE (id < {below} OR (id = {below} AND keep_until < {until})) AND {where}
ORDER BY id DESC, keep_until DESC LIMIT {limit}
