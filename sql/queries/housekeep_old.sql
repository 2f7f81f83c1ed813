-- Quarantined results and audit lines that are older than the attempts we keep.
DELETE FROM `{table}_{suffix}` WHERE {column} < UTC_TIMESTAMP(6) - INTERVAL {keep_ms} * 1000 MICROSECOND LIMIT 1000
