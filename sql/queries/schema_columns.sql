-- The columns of one of our tables, and whether each row that is inserted must give it a value.
SELECT {name}, COLUMN_NAME, IS_NULLABLE = 'NO' AND COLUMN_DEFAULT IS NULL AND EXTRA = ''
FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = {name}
