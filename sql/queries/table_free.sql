-- Waits for whoever holds the table as a whole, and changes nothing.
DELETE FROM `{table}{suffix}` WHERE FALSE
