-- A line for each of several attempts that went the same way: before its row moves on.
INSERT {ignore} INTO `{table}_attempts`
  (message_id, attempt, kind, outcome, task_id, route, claimed_by, due_at, published_at, finished_at)
SELECT o.message_id, {attempt_of}, {kind}, {outcome}, o.id, o.route,
  COALESCE(o.claimed_by, (SELECT s.owner FROM `{table}_shards` s WHERE s.shard = o.shard)),
  COALESCE(o.due_at, {o_by_delay}), {published},
  UTC_TIMESTAMP(6)
FROM `{table}` o FORCE INDEX (PRIMARY)
WHERE o.id IN ({ids}) AND {identity} AND o.state = {state} AND o.attempt = {attempt_from} AND o.shard IN ({shards})
