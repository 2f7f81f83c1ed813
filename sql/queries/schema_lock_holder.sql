-- Which connection has the lock of schema_lock.sql.
SELECT COALESCE(IS_USED_LOCK(CONCAT('duebox.migrate.', LEFT(SHA2(CONCAT(DATABASE(), '.', {name}), 256), 32))), 0)
