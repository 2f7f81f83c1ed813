-- Those of them that people have done with.
DELETE FROM `{table}_quarantine` WHERE {id} = id OR ({id} = 0 AND received_at < {before})
