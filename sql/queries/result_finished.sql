-- Tasks that are over; a dead one that was tried again is there twice.
SELECT message_id, state + 0, route, finished_at, attempt FROM `{table}_history` WHERE message_id IN ({message_ids})
