-- The rights of the users of users.sql, and no right more than each needs. After `duebox migrate`: the tables must exist.
-- It may be run again at any time, and should be after an upgrade.

-- Role 1, insert only: an application may add tasks, and may not write what only duebox writes.
GRANT INSERT (route, payload, headers, task_key, delay_ms, due_at, priority, order_key, dedup_key, message_id,
  max_attempts, timeout_ms, expires_at, target_host, shard) ON `shop`.`outbox` TO 'app'@'%';

-- Role 2, insert and read the new id back: object-relational mappers (SQLAlchemy 2, Django 5, Hibernate 6.5) send
-- INSERT .. RETURNING id to MariaDB, which asks for INSERT and SELECT on each column that is written or returned.
GRANT INSERT (id, route, payload, headers, task_key, delay_ms, due_at, priority, order_key, dedup_key, message_id,
  max_attempts, timeout_ms, expires_at, target_host, shard),
  SELECT (id, route, payload, headers, task_key, delay_ms, due_at, priority, order_key, dedup_key, message_id,
  max_attempts, timeout_ms, expires_at, target_host, shard)
  ON `shop`.`outbox` TO 'app_orm'@'%';

-- Role 3, insert and cancel: cancel.sql, reschedule.sql, bulk_change.sql and bind.sql too. Nobody but the daemon may
-- update shard and target_host: it moves a task to the move_to_shard or move_to_host that somebody asks for.
GRANT INSERT (id, route, payload, headers, task_key, delay_ms, due_at, priority, order_key, dedup_key, message_id,
  max_attempts, timeout_ms, expires_at, target_host, shard),
  SELECT, UPDATE (due_at, first_due_at, priority, max_attempts, move_to_shard, move_to_host), DELETE
  ON `shop`.`outbox` TO 'app_cancel'@'%';

-- Operators, for every statement in this folder.
GRANT SELECT, INSERT, DELETE,
  UPDATE (route, payload, headers, task_key, due_at, first_due_at, priority, max_attempts, timeout_ms, expires_at, state,
    move_to_shard, move_to_host)
  ON `shop`.`outbox` TO 'duebox_operator'@'%';
GRANT SELECT, INSERT, DELETE ON `shop`.`outbox_history` TO 'duebox_operator'@'%';
GRANT SELECT ON `shop`.`outbox_attempts` TO 'duebox_operator'@'%';
GRANT SELECT, DELETE ON `shop`.`outbox_quarantine` TO 'duebox_operator'@'%';
GRANT SELECT ON `shop`.`outbox_audit` TO 'duebox_operator'@'%';

-- The daemon. It drops partitions of what is over, and for that alone needs ALTER, CREATE and DROP on two tables. It
-- puts the counter of ids back after a client has driven it to its end, and for that alone needs ALTER on the first.
GRANT SELECT, INSERT, UPDATE, DELETE, ALTER ON `shop`.`outbox` TO 'duebox'@'%';
GRANT SELECT, INSERT, UPDATE ON `shop`.`outbox_shards` TO 'duebox'@'%';
GRANT SELECT, INSERT, UPDATE, DELETE ON `shop`.`outbox_heads` TO 'duebox'@'%';
GRANT SELECT, INSERT, UPDATE, DELETE ON `shop`.`outbox_instances` TO 'duebox'@'%';
GRANT SELECT, INSERT, UPDATE ON `shop`.`outbox_routes` TO 'duebox'@'%';
GRANT SELECT ON `shop`.`outbox_schedules` TO 'duebox'@'%';
GRANT SELECT, INSERT, UPDATE, DELETE ON `shop`.`outbox_quarantine` TO 'duebox'@'%';
GRANT SELECT, INSERT, DELETE ON `shop`.`outbox_audit` TO 'duebox'@'%';
GRANT SELECT ON `shop`.`outbox_schema` TO 'duebox'@'%';
GRANT SELECT, INSERT, DELETE, ALTER, CREATE, DROP ON `shop`.`outbox_history` TO 'duebox'@'%';
GRANT SELECT, INSERT, UPDATE, DELETE, ALTER, CREATE, DROP ON `shop`.`outbox_attempts` TO 'duebox'@'%';

-- Only if new tasks are to be noticed as they commit: it may read the whole server's binlog. Optional.
GRANT REPLICATION SLAVE ON *.* TO 'duebox'@'%';
-- MySQL also wants: GRANT REPLICATION CLIENT ON *.* TO 'duebox'@'%';
