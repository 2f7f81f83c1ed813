-- The next living tasks to change, by rising id, or the newest one.
SELECT id, message_id, state, shard, next_at, {maybe_sent}, {claim_lost},
  COALESCE(due_at, created_at + INTERVAL LEAST(GREATEST(delay_ms, 0), 315360000000) * 1000 MICROSECOND), expires_at FROM `{table}` {hint}
WHERE id > {after} AND {where} ORDER BY id {order} LIMIT {limit}
