-- The next ended tasks to change, by rising or falling id, and of one id by the end of their time.
SELECT id, message_id, state, shard, NULL, attempt > 0 OR recoveries > 0, FALSE, NULL, NULL, keep_until, CAST(message_id AS BINARY) FROM `{table}_history` {hint}
WHERE (id {beyond} {last} OR (id = {last} AND keep_until {beyond} {last_until})) AND {where} ORDER BY id {order}, keep_until {order} LIMIT {limit}
