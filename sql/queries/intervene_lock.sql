-- Rows that people want to change, as they are now; nobody else changes them until our commit.
SELECT id, message_id, shard, state + 0, attempt, failures, recoveries,
  COALESCE(due_at, created_at + INTERVAL delay_ms * 1000 MICROSECOND), first_due_at
FROM `{table}` FORCE INDEX (PRIMARY) WHERE id IN ({ids}) AND shard = {shard} ORDER BY id FOR UPDATE SKIP LOCKED
