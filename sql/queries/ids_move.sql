-- Gives these rows the ids after the last one, in their order. A claim does not outlive its row's id: whoever has it finds
-- no row to settle, and the task is due again. One that is due may have been sent from the memory of a daemon, which its
-- row says from now on. What a client wrote with the table's CHECKs switched off stays, but for a delay that no due time
-- can be computed from.
UPDATE JSON_TABLE({ids}, '$[*]' COLUMNS (n FOR ORDINALITY, id BIGINT UNSIGNED PATH '$')) AS far
STRAIGHT_JOIN `{table}` AS o FORCE INDEX (PRIMARY) ON o.id = far.id
SET o.id = {last} + far.n, o.changed_at = o.changed_at, o.delay_ms = LEAST(GREATEST(o.delay_ms, 0), 315360000000),
  o.recoveries = IF(o.state = 'scheduled' AND o.shard <> 63 AND o.next_at <= UTC_TIMESTAMP(6), GREATEST(o.recoveries, 1), o.recoveries),
  o.claimed_by = IF(o.state = 'claimed', NULL, o.claimed_by), o.lease_until = IF(o.state = 'claimed', NULL, o.lease_until),
  o.state = IF(o.state = 'claimed', 'scheduled', o.state)
