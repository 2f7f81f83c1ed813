-- The next living tasks to change, by rising or falling id.
SELECT id, message_id, state, shard, next_at, {maybe_sent}, {claim_lost},
  COALESCE(due_at, {by_delay}), expires_at, NULL, CAST(message_id AS BINARY) FROM `{table}` {hint}
WHERE id {beyond} {last} AND {where} ORDER BY id {order} LIMIT {limit}
