-- The largest id below a limit; 0 = there is none.
SELECT COALESCE(MAX(id), 0) FROM `{table}` WHERE id < {below}
