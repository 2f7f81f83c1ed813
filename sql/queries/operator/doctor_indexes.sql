-- Indexes that migrations made and that are not there, or are others under their names: whether something stands still
-- without it, or things that must not be there twice could be. The others make statements quick. A table that this user may
-- not see has none to see. One that the server ignores is found, and of no use.
SELECT on_table, name, needed, made, found FROM (
  SELECT '{table}' AS on_table, 'ix_next' AS name, 1 AS needed, 'state,shard,route,priority,next_at' AS made
  UNION ALL SELECT '{table}', 'ix_task_key', 0, 'task_key'
  UNION ALL SELECT '{table}', 'ux_dedup_key', 1, 'unique dedup_key'
  UNION ALL SELECT '{table}', 'ux_message_id', 1, 'unique message_id'
  UNION ALL SELECT '{table}_attempts', 'ix_message_id', 0, 'message_id,attempt'
  UNION ALL SELECT '{table}_attempts', 'ix_route_finished', 0, 'route,finished_at'
  UNION ALL SELECT '{table}_audit', 'ix_at', 0, 'at'
  UNION ALL SELECT '{table}_heads', 'ix_order_key', 1, 'route,order_key'
  UNION ALL SELECT '{table}_heads', 'ix_shard', 0, 'shard'
  UNION ALL SELECT '{table}_history', 'ix_message_id', 0, 'message_id'
  UNION ALL SELECT '{table}_history', 'ix_route_finished', 0, 'route,finished_at'
  UNION ALL SELECT '{table}_history', 'ix_state_finished', 1, 'state,finished_at'
  UNION ALL SELECT '{table}_history', 'ix_task_key', 0, 'task_key'
  UNION ALL SELECT '{table}_quarantine', 'ix_received_at', 0, 'received_at'
  UNION ALL SELECT '{table}_quarantine', 'ux_record', 1, 'unique source,origin,sha256'
  UNION ALL SELECT '{table}_schedules', 'ix_next_at', 0, 'next_at'
) wanted
LEFT JOIN (
  SELECT MIN(TABLE_NAME) AS in_table, INDEX_NAME AS index_name, CONCAT(IF(MAX(NON_UNIQUE) = 0, 'unique ', ''),
    GROUP_CONCAT(COLUMN_NAME, IF(SUB_PART IS NULL, '', CONCAT('(', SUB_PART, ')')) ORDER BY SEQ_IN_INDEX),
    IF(MIN(FALSE /*M! OR IGNORED = 'YES' *//*!80000 OR IS_VISIBLE = 'NO' */), ', ignored', '')) AS found
  FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = DATABASE() GROUP BY CAST(TABLE_NAME AS BINARY), INDEX_NAME
) there ON in_table = on_table AND index_name = name AND (NOT {case_counts} OR CAST(in_table AS BINARY) = on_table)
WHERE EXISTS (SELECT 1 FROM information_schema.TABLES
  WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = on_table AND (NOT {case_counts} OR CAST(TABLE_NAME AS BINARY) = on_table))
AND (found IS NULL OR found <> made)
ORDER BY needed DESC, on_table, name
