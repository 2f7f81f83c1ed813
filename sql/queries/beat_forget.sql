-- Instances that have been silent for a day.
DELETE FROM `{table}_instances` WHERE alive_until < UTC_TIMESTAMP(6) - INTERVAL 1 DAY
