-- Which of the tasks have a row, whoever holds it: tells those that were passed over from those that are over.
SELECT message_id, route, COALESCE(answer_to, 0) FROM `{table}` FORCE INDEX (PRIMARY) WHERE id IN ({ids})
