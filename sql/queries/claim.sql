-- Recorded claims, of rows that we hold: the attempt counts from here on, and nobody has changed
-- them since (result_lock.sql). Only if all shards are ours; the statement
-- before has locked theirs.
UPDATE `{table}` FORCE INDEX (PRIMARY)
SET changed_at = IF(attempt = 0 OR MOD(TIMESTAMPDIFF(MICROSECOND, created_at, changed_at), 900000000) = 0,
      created_at, created_at - INTERVAL 1 MICROSECOND),
    sent_digest = NULL, state = 'claimed', attempt = attempt + 1, claimed_by = {instance}, claim_epoch = CASE shard {epochs} END,
    lease_until = UTC_TIMESTAMP(6) + INTERVAL (LEAST(COALESCE(timeout_ms, {timeout_ms}), {timeout_most_ms}) + {lease_ms}) * 1000
      MICROSECOND
WHERE id IN ({ids}) AND state = 'scheduled' AND (SELECT COUNT(*) FROM `{table}_shards` WHERE {leases}) = {count}
