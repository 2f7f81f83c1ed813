-- Fails when the statement before it did not find as many rows: an overflow, which no sql_mode turns into a warning.
SET @duebox_guard = 9223372036854775807 + ABS(ROW_COUNT() - {rows})
