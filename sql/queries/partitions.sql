-- The time partitions of a table, oldest first; p_later holds what is beyond them. The server estimates the rows.
SELECT partition_name, partition_description, table_rows FROM information_schema.partitions
WHERE table_schema = DATABASE() AND table_name = {name} AND partition_name IS NOT NULL
ORDER BY partition_ordinal_position
