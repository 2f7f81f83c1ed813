-- Which rows there are, whoever holds them: tells those that were passed over from those that are gone.
SELECT id FROM `{table}` FORCE INDEX (PRIMARY) WHERE id IN ({ids}) ORDER BY id
