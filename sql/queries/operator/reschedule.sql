-- Another due time for tasks that wait: it counts as the one that was asked for.
UPDATE `{table}` SET due_at = {due}, first_due_at = NULL WHERE id IN ({ids}) AND state = 'scheduled'
