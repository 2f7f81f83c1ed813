-- One migrator at a time. (On Galera the lock is the node's own; statements are idempotent besides.)
SELECT GET_LOCK(CONCAT('duebox.migrate.', LEFT(SHA2(CONCAT(DATABASE(), '.', {name}), 256), 32)), 60)
