-- How many rows a rule refuses, and some of their ids.
SELECT COUNT(*), COALESCE(SUBSTRING_INDEX(GROUP_CONCAT(id ORDER BY id SEPARATOR ', '), ', ', {ids}), '')
FROM `{table}` WHERE NOT ({condition})
