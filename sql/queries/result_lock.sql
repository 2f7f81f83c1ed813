-- Those rows as they are now; nobody else changes them until our commit.
SELECT id, message_id, shard, state + 0, attempt, failures, recoveries, COALESCE(max_attempts, 0),
  COALESCE(timeout_ms, 0), COALESCE(due_at, created_at + INTERVAL delay_ms * 1000 MICROSECOND),
  COALESCE(first_due_at, due_at, created_at + INTERVAL delay_ms * 1000 MICROSECOND), expires_at, route, UTC_TIMESTAMP(6)
FROM `{table}` FORCE INDEX (PRIMARY) WHERE id IN ({ids}) ORDER BY id FOR UPDATE {skip}
