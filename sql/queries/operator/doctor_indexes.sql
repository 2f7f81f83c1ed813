-- Indexes that migrations made and that are not there: whether something stands still without it, or things that must not
-- be there twice could be. The others make statements quick. A table that this user may not see has none to see.
SELECT on_table, name, needed FROM (
  SELECT '{table}' AS on_table, 'ix_next' AS name, 1 AS needed
  UNION ALL SELECT '{table}', 'ix_task_key', 0
  UNION ALL SELECT '{table}', 'ux_dedup_key', 1
  UNION ALL SELECT '{table}', 'ux_message_id', 1
  UNION ALL SELECT '{table}_attempts', 'ix_message_id', 0
  UNION ALL SELECT '{table}_attempts', 'ix_route_finished', 0
  UNION ALL SELECT '{table}_audit', 'ix_at', 0
  UNION ALL SELECT '{table}_heads', 'ix_order_key', 1
  UNION ALL SELECT '{table}_heads', 'ix_shard', 0
  UNION ALL SELECT '{table}_history', 'ix_message_id', 0
  UNION ALL SELECT '{table}_history', 'ix_route_finished', 0
  UNION ALL SELECT '{table}_history', 'ix_state_finished', 1
  UNION ALL SELECT '{table}_history', 'ix_task_key', 0
  UNION ALL SELECT '{table}_quarantine', 'ix_received_at', 0
  UNION ALL SELECT '{table}_quarantine', 'ux_record', 1
  UNION ALL SELECT '{table}_schedules', 'ix_next_at', 0
) made
WHERE EXISTS (SELECT 1 FROM information_schema.TABLES
  WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = on_table)
AND NOT EXISTS (SELECT 1 FROM information_schema.STATISTICS
  WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = on_table AND INDEX_NAME = name)
ORDER BY needed DESC, on_table, name
