-- Other settings for tasks that wait.
UPDATE `{table}` SET {assignments} WHERE id IN ({ids}) AND state = 'scheduled'
