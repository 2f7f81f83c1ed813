-- The three users of a database `shop`, and no right more than each needs. Change names, hosts and passwords.
-- Run it twice: before `duebox migrate` it ends where the first table is missing; afterwards it grants the rest.

-- `duebox migrate` (database.migrate_user).
CREATE USER IF NOT EXISTS 'duebox_migrate'@'%' IDENTIFIED BY 'migrate-password';
GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, DROP, INDEX ON `shop`.* TO 'duebox_migrate'@'%';

-- The application may add tasks, and may not write what only duebox writes.
CREATE USER IF NOT EXISTS 'app'@'%' IDENTIFIED BY 'app-password';
GRANT INSERT (route, payload, headers, task_key, delay_ms, due_at, priority, order_key, dedup_key, message_id,
  max_attempts, timeout_ms, expires_at, target_host, shard) ON `shop`.`outbox` TO 'app'@'%';

-- The daemon. It drops partitions of what is over, and for that alone needs ALTER, CREATE and DROP on two tables.
CREATE USER IF NOT EXISTS 'duebox'@'%' IDENTIFIED BY 'duebox-password';
GRANT SELECT, INSERT, UPDATE, DELETE ON `shop`.`outbox` TO 'duebox'@'%';
GRANT SELECT, INSERT, UPDATE, DELETE ON `shop`.`outbox_shards` TO 'duebox'@'%';
GRANT SELECT, INSERT, UPDATE, DELETE ON `shop`.`outbox_heads` TO 'duebox'@'%';
GRANT SELECT, INSERT, UPDATE, DELETE ON `shop`.`outbox_instances` TO 'duebox'@'%';
GRANT SELECT, INSERT, UPDATE, DELETE ON `shop`.`outbox_routes` TO 'duebox'@'%';
GRANT SELECT, INSERT, UPDATE, DELETE ON `shop`.`outbox_schedules` TO 'duebox'@'%';
GRANT SELECT, INSERT, UPDATE, DELETE ON `shop`.`outbox_quarantine` TO 'duebox'@'%';
GRANT SELECT, INSERT, UPDATE, DELETE ON `shop`.`outbox_audit` TO 'duebox'@'%';
GRANT SELECT ON `shop`.`outbox_schema` TO 'duebox'@'%';
GRANT SELECT, INSERT, UPDATE, DELETE, ALTER, CREATE, DROP ON `shop`.`outbox_history` TO 'duebox'@'%';
GRANT SELECT, INSERT, UPDATE, DELETE, ALTER, CREATE, DROP ON `shop`.`outbox_attempts` TO 'duebox'@'%';

-- Only where new tasks are to be noticed as they commit: it may read the whole server's binlog. Optional.
GRANT REPLICATION SLAVE ON *.* TO 'duebox'@'%';
