-- How many match, without looking further than {cap}.
SELECT COUNT(*) FROM (SELECT 1 FROM `{table}{suffix}` WHERE {where} LIMIT {cap}) AS matching
