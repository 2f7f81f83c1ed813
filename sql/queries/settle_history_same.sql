-- Finished rows into the history, all in the same way. due_at is there as it was first asked for.
INSERT {ignore} INTO `{table}_history`
  (id, message_id, route, payload, headers, task_key, due_at, priority, order_key, dedup_key, max_attempts, timeout_ms,
   expires_at, target_host, shard, created_at, state, attempt, failures, recoveries, revision, claimed_by, published_at,
   finished_at, error_class, last_error, progress, checkpoint, keep_until)
SELECT o.id, o.message_id, o.route, o.payload, o.headers, o.task_key,
  COALESCE(o.first_due_at, o.due_at, {o_by_delay}), o.priority, o.order_key, o.dedup_key, o.max_attempts, o.timeout_ms, o.expires_at, o.target_host, o.shard, o.created_at,
  {state_to}, {attempt}, {failures}, {recoveries}, o.revision,
  IF({state_to} = 'cancelled', o.claimed_by,
    COALESCE(o.claimed_by, (SELECT s.owner FROM `{table}_shards` s WHERE s.shard = o.shard))),
  {published}, UTC_TIMESTAMP(6), o.error_class, o.last_error, o.progress, o.checkpoint,
  UTC_TIMESTAMP(6) + INTERVAL LEAST({keep}, 3153600000000000) MICROSECOND
FROM `{table}` o FORCE INDEX (PRIMARY)
WHERE o.id IN ({ids}) AND {identity} AND o.state = {state} AND o.attempt = {attempt_from} AND o.shard IN ({shards})
