-- What somebody has made of one of our tables by converting it: it has no transactions any more, or columns that tell one
-- thing from another no longer do so byte by byte.
SELECT TABLE_NAME, NULL, ENGINE FROM information_schema.TABLES
WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = {name} AND ENGINE <> 'InnoDB'
UNION ALL
SELECT TABLE_NAME, COLUMN_NAME, COLLATION_NAME FROM information_schema.COLUMNS
WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = {name}
  AND COLUMN_NAME IN ('message_id', 'route', 'task_key', 'order_key', 'dedup_key', 'target_host', 'move_to_host',
    'claimed_by', 'owner', 'id')
  AND RIGHT(COLLATION_NAME, 4) <> '_bin'
