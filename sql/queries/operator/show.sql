-- One living task with the head of its payload.
SELECT id, message_id, route, task_key, state, priority, shard, attempt, failures, recoveries, max_attempts, timeout_ms,
  COALESCE(due_at, {by_delay}) AS due_at, first_due_at, expires_at, next_at, claimed_by, lease_until, published_at, NULL AS finished_at, created_at,
  NULL AS keep_until, order_key, dedup_key, target_host, move_to_host, move_to_shard, error_class, last_error, progress, checkpoint, NULL AS result,
  headers, LENGTH(payload) AS payload_length, LEFT(payload, {cap}) AS payload
FROM `{table}` WHERE id = {id}
