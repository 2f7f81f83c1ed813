-- Whether any row has a far id.
SELECT EXISTS (SELECT 1 FROM `{table}` WHERE id >= {far})
