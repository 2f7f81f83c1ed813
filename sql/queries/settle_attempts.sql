-- A line for each attempt worth keeping: before its row moves on.
INSERT {ignore} INTO `{table}_attempts`
  (message_id, attempt, kind, outcome, task_id, route, claimed_by, due_at, published_at, finished_at, error_class, error,
   result)
SELECT o.message_id, v.attempt_of, v.kind, v.outcome, o.id, o.route,
  COALESCE(o.claimed_by, (SELECT s.owner FROM `{table}_shards` s WHERE s.shard = o.shard)),
  COALESCE(o.due_at, {o_by_delay}),
  COALESCE(v.published, o.published_at), UTC_TIMESTAMP(6), v.error_class, v.error, v.result
FROM JSON_TABLE({rows}, '$[*]' COLUMNS (
    id BIGINT UNSIGNED PATH '$[0]', state_from INT UNSIGNED PATH '$[1]', attempt_from INT UNSIGNED PATH '$[2]',
    shard INT UNSIGNED PATH '$[3]', published DATETIME(6) PATH '$[9]',
    error_class VARCHAR(64) CHARACTER SET utf8mb4 PATH '$[11]', error TEXT CHARACTER SET utf8mb4 PATH '$[12]',
    result MEDIUMTEXT CHARACTER SET utf8mb4 PATH '$[15]', attempt_of INT UNSIGNED PATH '$[16]',
    kind VARCHAR(16) CHARACTER SET utf8mb4 PATH '$[17]', outcome VARCHAR(16) CHARACTER SET utf8mb4 PATH '$[18]',
    message_id VARCHAR(65) CHARACTER SET ascii COLLATE ascii_bin PATH '$[20]', changed_at DATETIME(6) PATH '$[21]')) v
STRAIGHT_JOIN `{table}` o FORCE INDEX (PRIMARY)
  ON o.id = v.id AND o.message_id = COALESCE(v.message_id, o.message_id) AND o.state + 0 = v.state_from AND o.attempt = v.attempt_from AND o.shard = v.shard
  AND (v.changed_at IS NULL OR o.changed_at = v.changed_at)
