-- Columns of one of our tables that tell one thing from another, and no longer do so byte by byte since somebody has
-- converted the table.
SELECT TABLE_NAME, COLUMN_NAME, COLLATION_NAME FROM information_schema.COLUMNS
WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = {name}
  AND COLUMN_NAME IN ('message_id', 'route', 'task_key', 'order_key', 'dedup_key', 'target_host', 'move_to_host',
    'claimed_by', 'owner', 'id')
  AND RIGHT(COLLATION_NAME, 4) <> '_bin'
