-- The row that this connection inserted last; asked before the commit, for a quick daemon may take it right after.
SELECT id, message_id FROM `{table}` WHERE id = LAST_INSERT_ID()
