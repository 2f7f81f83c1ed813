-- Rows whose result is awaited now, all in the same way: cheaper by a third than from a JSON text.
UPDATE `{table}` o FORCE INDEX (PRIMARY)
SET o.changed_at = IF(o.attempt = 0 OR MOD(TIMESTAMPDIFF(MICROSECOND, o.created_at, o.changed_at), 900000000) = 0,
      o.created_at, o.created_at - INTERVAL 1 MICROSECOND), o.claim_epoch = COALESCE(o.claim_epoch, 0), o.sent_digest = {content},
    o.answer_to = {answer_to},
    o.state = 'awaiting', o.lease_until = UTC_TIMESTAMP(6) + INTERVAL LEAST({delay}, 315360000000000) MICROSECOND,
    o.attempt = {attempt}, o.failures = {failures}, o.recoveries = {recoveries}, o.published_at = {published}
WHERE o.id IN ({ids}) AND {identity} AND o.state = {state} AND o.attempt = {attempt_from} AND o.shard IN ({shards}) AND {fence}
