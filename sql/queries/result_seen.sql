-- Results of these tasks that were applied before, by attempt, and what followed from them. Tasks that were over before
-- may have had their message ids: by the row's id they are told apart.
SELECT message_id, attempt, route, outcome, task_id FROM `{table}_attempts`
WHERE message_id IN ({message_ids}) AND kind = 'result'
