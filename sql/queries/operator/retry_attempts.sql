-- What is kept of attempts of tasks that came back under another id follows them (ids_attempts.sql). The first table is the
-- one that is written: rights.c takes it for that.
UPDATE `{table}_attempts` AS a FORCE INDEX (ix_message_id)
JOIN `{table}_history` AS h FORCE INDEX (PRIMARY) ON a.message_id = h.message_id AND a.task_id = h.id
JOIN `{table}` AS o FORCE INDEX (ux_message_id) ON o.message_id = h.message_id
SET a.task_id = o.id WHERE h.id IN ({ids}) AND (h.id, h.keep_until) IN ({keys}) AND o.id <> h.id
