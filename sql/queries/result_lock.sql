-- Those rows as they are now; nobody else changes them until our commit. Whether anybody but duebox has changed them:
-- a row begins with changed_at as created_at, by the clock of the session that inserted it, which is off by its time
-- zone: a multiple of 15 minutes. When it is claimed or published it is set to created_at again, less a microsecond when
-- earlier attempts had another content. Rows without claim_epoch were claimed or published by a daemon of schema 4
-- that went on beside the migration, and kept no such record.
SELECT id, message_id, shard, state + 0, attempt, failures, recoveries, COALESCE(max_attempts, 0),
  COALESCE(timeout_ms, 0), COALESCE(due_at, {by_delay}),
  COALESCE(first_due_at, due_at, {by_delay}), expires_at, route, UTC_TIMESTAMP(6),
  (state NOT IN ('claimed', 'awaiting') OR claim_epoch IS NOT NULL)
    * CASE WHEN MOD(TIMESTAMPDIFF(MICROSECOND, created_at, changed_at), 900000000) = 0 THEN 0
           WHEN changed_at = created_at - INTERVAL 1 MICROSECOND THEN 1 ELSE 2 END, changed_at, COALESCE(answer_to, 0),
  LENGTH(payload) + LENGTH(headers) + COALESCE(LENGTH(checkpoint), 0)
FROM `{table}` FORCE INDEX (PRIMARY) WHERE id IN ({ids}) ORDER BY id FOR UPDATE {skip}
