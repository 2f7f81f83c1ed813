-- The sessions that an instance has on this server, by the names that the server keeps for them; NULL: nobody has it.
-- The numbers are made without recursion, whose depth an administrator may limit for all.
SELECT IS_USED_LOCK(CONCAT('duebox ', LEFT(SHA2(CONCAT(DATABASE(), '.{table}/', {instance}), 256), 40), ' ', n - 1))
FROM JSON_TABLE(CONCAT('[0', REPEAT(',0', {names} - 1), ']'), '$[*]' COLUMNS (n FOR ORDINALITY)) numbers
