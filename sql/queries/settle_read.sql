-- Locked rows as they are now, to compare with what was sent.
SELECT {columns} FROM `{table}` FORCE INDEX (PRIMARY) WHERE id IN ({ids}) ORDER BY id
