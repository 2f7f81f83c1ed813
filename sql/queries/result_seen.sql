-- Results of these tasks that were applied before, by attempt.
SELECT message_id, attempt, route FROM `{table}_attempts` WHERE message_id IN ({message_ids}) AND kind = 'result'
