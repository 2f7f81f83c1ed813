-- Up to when there are partitions, whether that is over, and whether there is one for what comes behind them; a table
-- without any takes everything.
SELECT TABLE_NAME, MAX(IF(PARTITION_DESCRIPTION = 'MAXVALUE', NULL, REPLACE(PARTITION_DESCRIPTION, '''', ''))) AS ahead,
  MAX(IF(PARTITION_DESCRIPTION = 'MAXVALUE', NULL, REPLACE(PARTITION_DESCRIPTION, '''', ''))) > UTC_TIMESTAMP(6),
  MAX(PARTITION_NAME IS NULL OR PARTITION_DESCRIPTION = 'MAXVALUE')
FROM information_schema.PARTITIONS
WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME IN ({history}, {attempts})
  AND (NOT {case_counts} OR CAST(TABLE_NAME AS BINARY) IN ({history}, {attempts})) GROUP BY TABLE_NAME
