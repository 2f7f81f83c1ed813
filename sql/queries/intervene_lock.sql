-- Rows that people want to change, as they are now; nobody else changes them until our commit. What `before` names becomes
-- the before image of the audit row, the same as by queries/operator/lock_living.sql.
SELECT id, CAST(message_id AS BINARY) AS message_id, state, shard, attempt, failures,
  COALESCE(due_at, {by_delay}) AS due_at, first_due_at, priority, max_attempts,
  timeout_ms, expires_at, target_host, {maybe_sent} AS maybe_sent, recoveries, state + 0 AS state_number,
  {claim_lost} AS claim_lost
FROM `{table}` FORCE INDEX (PRIMARY) WHERE id IN ({ids}) AND shard = {shard} ORDER BY id FOR UPDATE SKIP LOCKED
