-- A line for each task whose copy has left, and whose row plain SQL has removed meanwhile: not where a result or a command
-- has ended it, which says so itself. What the history counts fewer attempts of was put there by somebody who did not
-- know of this copy: sql/examples/cancel_kept.sql, say.
INSERT INTO `{table}_attempts`
  (message_id, attempt, kind, outcome, task_id, route, claimed_by, due_at, published_at, finished_at)
SELECT v.message_id, v.attempt, v.kind, 'sent_then_removed', v.id, v.route,
  (SELECT s.owner FROM `{table}_shards` s WHERE s.shard = v.shard), v.due_at, v.published, UTC_TIMESTAMP(6)
FROM JSON_TABLE({rows}, '$[*]' COLUMNS (
    id BIGINT UNSIGNED PATH '$[0]', shard INT UNSIGNED PATH '$[1]', attempt INT UNSIGNED PATH '$[2]',
    kind VARCHAR(16) CHARACTER SET utf8mb4 PATH '$[3]',
    message_id VARCHAR(65) CHARACTER SET ascii COLLATE ascii_bin PATH '$[4]',
    route VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin PATH '$[5]', due_at DATETIME(6) PATH '$[6]',
    published DATETIME(6) PATH '$[7]')) v
WHERE NOT EXISTS (SELECT 1 FROM `{table}_attempts` a WHERE a.message_id = v.message_id
                    AND (a.attempt = v.attempt OR (a.kind = 'result' AND a.outcome IN ('done', 'dead'))))
  AND NOT EXISTS (SELECT 1 FROM `{table}_history` h WHERE h.message_id = v.message_id AND h.attempt >= v.attempt)
