-- What came back to life leaves the history.
DELETE FROM `{table}_history` WHERE id IN ({ids}) AND message_id IN ({message_ids})
