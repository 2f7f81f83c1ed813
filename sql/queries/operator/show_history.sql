-- One ended task with the head of its payload.
SELECT id, message_id, route, task_key, state, priority, shard, attempt, failures, recoveries, max_attempts, timeout_ms,
  due_at, NULL AS first_due_at, expires_at, NULL AS next_at, claimed_by, NULL AS lease_until, published_at, finished_at,
  created_at, keep_until, order_key, dedup_key, target_host, NULL AS move_to_host, NULL AS move_to_shard, error_class, last_error, progress, checkpoint, result,
  headers, LENGTH(payload) AS payload_length, LEFT(payload, {cap}) AS payload
FROM `{table}_history` WHERE id = {id} AND keep_until = {keep_until}
