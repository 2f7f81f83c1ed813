-- Which living rows results are for. Locked afterwards, in primary-key order, so that two who lock many rows never wait
-- for each other in a circle.
SELECT id FROM `{table}` WHERE message_id IN ({message_ids})
