-- The table's columns in their order, which is all that the binlog says of them.
SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = {name}
ORDER BY ORDINAL_POSITION
