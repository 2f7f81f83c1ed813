-- Tasks that wait for their next attempt have it now.
UPDATE `{table}` SET due_at = UTC_TIMESTAMP(6) WHERE id IN ({ids}) AND state = 'scheduled' AND failures > 0
