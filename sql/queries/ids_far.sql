-- The largest far id that a row has; 0 = none.
SELECT COALESCE(MAX(id), 0) FROM `{table}` WHERE id >= {far}
