-- Instances that have been silent for a day.
DELETE FROM `{table}_instances` WHERE id IN ({ids})
