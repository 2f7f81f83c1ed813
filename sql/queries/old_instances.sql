-- Instances that have been silent for a day, as far as nobody else holds their rows.
SELECT id FROM `{table}_instances` WHERE alive_until < UTC_TIMESTAMP(6) - INTERVAL 1 DAY
ORDER BY id LIMIT 100 FOR UPDATE SKIP LOCKED
