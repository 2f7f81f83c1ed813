-- What somebody has added to our tables and works in every transaction on them, as far as this user may see it.
(SELECT 'triggers', CONCAT('trigger ', TRIGGER_NAME, ' runs ', ACTION_TIMING, ' ', EVENT_MANIPULATION, ' on ', EVENT_OBJECT_TABLE)
FROM information_schema.TRIGGERS WHERE EVENT_OBJECT_SCHEMA = DATABASE() AND EVENT_OBJECT_TABLE IN ({tables})
  AND (NOT {case_counts} OR CAST(EVENT_OBJECT_TABLE AS BINARY) IN ({tables})) LIMIT {cap})
UNION ALL
(SELECT DISTINCT 'foreign keys', CONCAT('foreign key ', CONSTRAINT_NAME, ' of ', TABLE_NAME, ' references ', REFERENCED_TABLE_NAME)
FROM information_schema.KEY_COLUMN_USAGE
WHERE TABLE_SCHEMA = DATABASE() AND REFERENCED_TABLE_SCHEMA = DATABASE()
  AND (REFERENCED_TABLE_NAME IN ({tables}) OR TABLE_NAME IN ({tables}) AND REFERENCED_TABLE_NAME IS NOT NULL)
  AND (NOT {case_counts} OR CAST(REFERENCED_TABLE_NAME AS BINARY) IN ({tables}) OR CAST(TABLE_NAME AS BINARY) IN ({tables})) LIMIT {cap})
