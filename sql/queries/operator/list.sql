-- Living tasks, newest first. {where} comes from outbox/operator_filter.c; {below} pages by key.
SELECT id, message_id, route, task_key, state, priority, shard, attempt, failures, recoveries, max_attempts, timeout_ms,
  COALESCE(due_at, {by_delay}) AS due_at, first_due_at, expires_at, lease_until, published_at, NULL AS finished_at, created_at, NULL AS keep_until,
  order_key, dedup_key, target_host, claimed_by, error_class, last_error, progress
FROM `{table}` {hint} WHERE id < {below} AND {where} ORDER BY id DESC LIMIT {limit}
