-- Rows that were changed since it was decided about them: due again as they are now. Where a copy of what they were has
-- left, this is another revision.
UPDATE JSON_TABLE({rows}, '$[*]' COLUMNS (
    id BIGINT UNSIGNED PATH '$[0]', state_from INT UNSIGNED PATH '$[1]', attempt_from INT UNSIGNED PATH '$[2]',
    shard INT UNSIGNED PATH '$[3]', attempt INT UNSIGNED PATH '$[5]',
    message_id VARCHAR(65) CHARACTER SET ascii COLLATE ascii_bin PATH '$[20]',
    sent INT UNSIGNED PATH '$[22]')) v
STRAIGHT_JOIN `{table}` o FORCE INDEX (PRIMARY)
  ON o.id = v.id AND o.message_id = v.message_id AND o.state + 0 = v.state_from AND o.attempt = v.attempt_from AND o.shard = v.shard
SET o.changed_at = o.changed_at, o.state = 'scheduled', o.claimed_by = NULL, o.lease_until = NULL,
    o.attempt = v.attempt, o.revision = o.revision + v.sent, o.sent_digest = NULL
WHERE {fence}
