-- Of the tables that have the name of one of ours: whether it can be ours, as ours have had that column since they were made.
SELECT {name}, MAX(COLUMN_NAME = {column}) FROM information_schema.COLUMNS
WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = {name} HAVING COUNT(*) > 0
