-- What the session does that holds the lock of migrations: "Sleep" where it has nothing to do; nothing where none has it.
SELECT COALESCE((SELECT COMMAND FROM information_schema.PROCESSLIST
  WHERE ID = IS_USED_LOCK(CONCAT('duebox.migrate.', LEFT(SHA2(CONCAT(DATABASE(), '.', {name}), 256), 32)))), '')
