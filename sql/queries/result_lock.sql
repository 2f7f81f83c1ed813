-- Those rows as they are now; nobody else changes them until our commit.
SELECT id, message_id, shard, state + 0, attempt, failures, recoveries, COALESCE(max_attempts, 0),
  COALESCE(timeout_ms, 0), due_at, COALESCE(first_due_at, due_at), expires_at, route, UTC_TIMESTAMP(6)
FROM `{table}` FORCE INDEX (PRIMARY) WHERE id IN ({ids}) ORDER BY id FOR UPDATE {skip}
