-- What is kept of attempts of tasks that came back under another id follows them (ids_attempts.sql).
UPDATE `{table}_history` AS h FORCE INDEX (PRIMARY)
STRAIGHT_JOIN `{table}` AS o FORCE INDEX (ux_message_id) ON o.message_id = h.message_id
STRAIGHT_JOIN `{table}_attempts` AS a FORCE INDEX (ix_message_id) ON a.message_id = h.message_id AND a.task_id = h.id
SET a.task_id = o.id WHERE h.id IN ({ids}) AND (h.id, h.keep_until) IN ({keys}) AND o.id <> h.id
