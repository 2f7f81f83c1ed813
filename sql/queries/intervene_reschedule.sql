-- Another due time: it counts as the one that was asked for.
UPDATE `{table}` FORCE INDEX (PRIMARY) SET due_at = {due_at}, first_due_at = NULL WHERE id IN ({ids}) AND state = 'scheduled'
