-- What came back to life leaves the history.
DELETE FROM `{table}_history` WHERE id IN ({ids}) AND (id, keep_until) IN ({keys})
