-- The shards that spread the outbox over daemons, and the outbox itself.
-- The words in braces are the configured table name and the number of shards. A statement ends with a semicolon at the
-- end of a line. Migrations that were released never change; what changes later comes as a new file.

-- A daemon that holds a shard is alone in it. Each acquisition and each return raises the epoch; every write that
-- settles rows checks it. unclean says that the last owner vanished with claims in its memory.
CREATE TABLE IF NOT EXISTS `{table}_shards` (
  shard         TINYINT UNSIGNED NOT NULL,
  epoch         BIGINT UNSIGNED  NOT NULL DEFAULT 0,
  owner         VARCHAR(64)      CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  lease_until   DATETIME(6)      NULL,
  unclean       BOOLEAN          NOT NULL DEFAULT FALSE,
  PRIMARY KEY (shard)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

INSERT IGNORE INTO `{table}_shards` (shard) VALUES {shard_rows};

-- Tasks that are bound to a host have a shard of their own. Nobody leases it: every daemon looks there for its own host
-- and claims in the table.
INSERT IGNORE INTO `{table}_shards` (shard, epoch) VALUES (63, 1);

-- Tasks that are alive. What is finished moves to the history.
CREATE TABLE IF NOT EXISTS `{table}` (
  -- Identity. message_id is what consumers see; id only orders rows (a failover may hand it out again).
  id            BIGINT UNSIGNED  NOT NULL AUTO_INCREMENT,
  message_id    VARCHAR(64)      CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT (UUID()),
  -- Written by the application.
  route         VARCHAR(64)      CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  payload       LONGBLOB         NOT NULL,
  headers       TEXT             CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT ('{}'),
  task_key      VARCHAR(255)     CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT '',
  delay_ms      BIGINT UNSIGNED  NOT NULL DEFAULT 0,
  due_at        DATETIME(6)      NOT NULL DEFAULT (UTC_TIMESTAMP(6) + INTERVAL delay_ms * 1000 MICROSECOND),
  priority      TINYINT UNSIGNED NOT NULL DEFAULT 5,
  order_key     VARCHAR(255)     CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT '',
  dedup_key     VARCHAR(255)     CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  max_attempts  INT UNSIGNED     NULL,
  timeout_ms    INT UNSIGNED     NULL,
  expires_at    DATETIME(6)      NULL,
  target_host   VARCHAR(64)      CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT '',
  shard         TINYINT UNSIGNED NOT NULL
    DEFAULT (IF(target_host = '', CRC32(IF(order_key = '', message_id, order_key)) MOD {shards}, 63)),
  created_at    DATETIME(6)      NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
  -- Written by duebox. The order of states is the order in core/task_state.def.
  state         ENUM('scheduled', 'claimed', 'awaiting', 'held', 'blocked')
                                 CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT 'scheduled',
  attempt       INT UNSIGNED     NOT NULL DEFAULT 0,
  failures      INT UNSIGNED     NOT NULL DEFAULT 0,
  recoveries    INT UNSIGNED     NOT NULL DEFAULT 0,
  claimed_by    VARCHAR(64)      CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  lease_until   DATETIME(6)      NULL,
  first_due_at  DATETIME(6)      NULL,
  published_at  DATETIME(6)      NULL,
  finished_at   DATETIME(6)      NULL,
  error_class   VARCHAR(64)      CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  last_error    TEXT             CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  progress      DOUBLE           NULL,
  checkpoint    MEDIUMTEXT       CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  -- When a daemon has to look at the row next.
  next_at       DATETIME(6)      GENERATED ALWAYS AS (IF(state IN ('claimed', 'awaiting'), lease_until, due_at)) STORED,

  PRIMARY KEY (id),
  KEY ix_next (state, shard, route, priority, next_at),
  KEY ix_task_key (task_key),
  UNIQUE KEY ux_message_id (message_id),
  UNIQUE KEY ux_dedup_key (dedup_key),

  -- What a foreign writer, a careless client or a lenient sql_mode must not get past.
  CONSTRAINT `{table}_message_id` CHECK (message_id <> '' AND message_id NOT REGEXP '[^!-~]'),
  CONSTRAINT `{table}_route` CHECK (route <> '' AND route NOT REGEXP '[^!-~]'),
  CONSTRAINT `{table}_delay_ms` CHECK (delay_ms <= 315360000000),
  CONSTRAINT `{table}_due_at` CHECK (due_at >= '2000-01-01 00:00:00' AND due_at < '2200-01-01 00:00:00'),
  CONSTRAINT `{table}_expires_at` CHECK (expires_at >= '2000-01-01 00:00:00' AND expires_at < '2200-01-01 00:00:00'),
  CONSTRAINT `{table}_priority` CHECK (priority BETWEEN 1 AND 9),
  CONSTRAINT `{table}_dedup_key` CHECK (dedup_key <> ''),
  CONSTRAINT `{table}_max_attempts` CHECK (max_attempts >= 1),
  CONSTRAINT `{table}_timeout_ms` CHECK (timeout_ms >= 1),
  CONSTRAINT `{table}_shard` CHECK (shard < {shards} OR shard = 63),
  CONSTRAINT `{table}_target_host` CHECK ((target_host = '') = (shard <> 63) AND target_host NOT LIKE '% '),
  CONSTRAINT `{table}_state` CHECK (state IN ('scheduled', 'claimed', 'awaiting', 'held', 'blocked')),
  CONSTRAINT `{table}_lease_until` CHECK (state NOT IN ('claimed', 'awaiting') OR lease_until IS NOT NULL),
  CONSTRAINT `{table}_finished_at` CHECK (finished_at IS NULL)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;
