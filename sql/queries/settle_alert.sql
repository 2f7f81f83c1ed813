-- A task that tells of a dead one, in the transaction that lets it die. Bytes that are no ASCII, which a client with a
-- lenient sql_mode may have written, are read as latin1, where each is a character: the server converts them to nothing.
-- While there is no next row id it has one behind the last ordinary one: it tells of what dies just then, too.
INSERT INTO `{table}` (id, route, task_key, payload)
SELECT IF({own_id}, (SELECT COALESCE(MAX(id), 0) FROM `{table}` WHERE id < {far}) + {gap} + v.n, NULL), v.alert_route, LEFT(o.task_key, 255), JSON_OBJECT('message_id', CONVERT(CAST(o.message_id AS BINARY) USING latin1),
  'route', CONVERT(CAST(o.route AS BINARY) USING latin1), 'task_key', o.task_key,
  'attempt', v.attempt, 'failures', v.failures, 'error_class', v.error_class, 'error', v.error,
  'due_at', DATE_FORMAT(COALESCE(o.first_due_at, o.due_at, {o_by_delay}),
    '%Y-%m-%dT%H:%i:%s.%fZ'),
  'dead_at', DATE_FORMAT(UTC_TIMESTAMP(6), '%Y-%m-%dT%H:%i:%s.%fZ'))
FROM JSON_TABLE({rows}, '$[*]' COLUMNS (n FOR ORDINALITY,
    id BIGINT UNSIGNED PATH '$[0]', state_from INT UNSIGNED PATH '$[1]', attempt_from INT UNSIGNED PATH '$[2]',
    shard INT UNSIGNED PATH '$[3]', attempt INT UNSIGNED PATH '$[5]', failures INT UNSIGNED PATH '$[6]',
    error_class VARCHAR(64) CHARACTER SET utf8mb4 PATH '$[11]', error TEXT CHARACTER SET utf8mb4 PATH '$[12]',
    alert_route VARCHAR(64) CHARACTER SET utf8mb4 PATH '$[19]',
    message_id VARCHAR(65) CHARACTER SET ascii COLLATE ascii_bin PATH '$[20]', changed_at DATETIME(6) PATH '$[21]')) v
STRAIGHT_JOIN `{table}` o FORCE INDEX (PRIMARY)
  ON o.id = v.id AND o.message_id = COALESCE(v.message_id, o.message_id) AND o.state + 0 = v.state_from AND o.attempt = v.attempt_from AND o.shard = v.shard
  AND (v.changed_at IS NULL OR o.changed_at = v.changed_at)
