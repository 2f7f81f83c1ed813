-- What is about to be changed, as it is now. The columns up to maybe_sent become the before image of the audit row.
SELECT id, message_id, state, shard, attempt, failures,
  COALESCE(due_at, {by_delay}) AS due_at, first_due_at, priority, max_attempts, timeout_ms,
  expires_at, target_host, {maybe_sent} AS maybe_sent, COALESCE(next_at <= UTC_TIMESTAMP(6), TRUE) AS due,
  COALESCE(next_at <= UTC_TIMESTAMP(6) + INTERVAL 1 SECOND, TRUE) AS soon, {claim_lost} AS claim_lost,
  LENGTH(order_key) > 0 AS ordered, move_to_host
FROM `{table}` WHERE id IN ({ids}) ORDER BY id FOR UPDATE {wait}
