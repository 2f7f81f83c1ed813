-- The sessions that an instance has on this server, by the names that the server keeps for them; NULL: nobody has it.
WITH RECURSIVE numbers AS (SELECT 0 AS n UNION ALL SELECT n + 1 FROM numbers WHERE n + 1 < {names})
SELECT IS_USED_LOCK(CONCAT('duebox ', LEFT(SHA2(CONCAT(DATABASE(), '.{table}/', {instance}), 256), 40), ' ', n)) FROM numbers
