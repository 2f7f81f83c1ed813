-- The first rows by id that are larger than most. The others are only passed over, and none is read behind the last that
-- is given: who asks its size reads a whole row, a large one for milliseconds.
SELECT id, LENGTH(payload) + LENGTH(headers) + COALESCE(LENGTH(checkpoint), 0) FROM `{table}` FORCE INDEX (PRIMARY)
WHERE id IN ({ids}) AND LENGTH(payload) + LENGTH(headers) + COALESCE(LENGTH(checkpoint), 0) > {more_than}
ORDER BY id LIMIT {limit}
