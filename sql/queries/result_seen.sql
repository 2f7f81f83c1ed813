-- Results of these tasks that were applied before, by attempt, and what followed from them.
SELECT message_id, attempt, route, outcome FROM `{table}_attempts` WHERE message_id IN ({message_ids}) AND kind = 'result'
