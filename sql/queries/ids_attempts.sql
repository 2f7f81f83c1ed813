-- What is kept of attempts of these tasks follows them: a result is told by the row's id from one of an earlier task that
-- had the message id.
UPDATE `{table}_attempts` AS a FORCE INDEX (ix_message_id)
JOIN JSON_TABLE({ids}, '$[*]' COLUMNS (n FOR ORDINALITY, id BIGINT UNSIGNED PATH '$')) AS far
JOIN `{table}` AS o FORCE INDEX (PRIMARY) ON o.id = far.id
SET a.task_id = {last} + far.n WHERE a.message_id = o.message_id AND a.task_id = far.id
