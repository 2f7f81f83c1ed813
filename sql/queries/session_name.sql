-- A name that the server keeps for this session while it lives. 1: the session has it.
SELECT GET_LOCK(CONCAT('duebox ', LEFT(SHA2(CONCAT(DATABASE(), '.{table}/', {instance}), 256), 40), ' ', {number}), 0)
