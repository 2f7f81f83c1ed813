-- Cancelled tasks leave the outbox.
DELETE FROM `{table}` WHERE id IN ({ids})
