-- What is over: finished tasks, their attempts, and results that fitted nothing. Partitioned by time and dropped by
-- partition; the daemon adds partitions ahead.

CREATE TABLE IF NOT EXISTS `{table}_history` (
  id            BIGINT UNSIGNED  NOT NULL,
  message_id    VARCHAR(64)      CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  route         VARCHAR(64)      CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  payload       LONGBLOB         NOT NULL,
  headers       TEXT             CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  task_key      VARCHAR(255)     CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  due_at        DATETIME(6)      NOT NULL,
  priority      TINYINT UNSIGNED NOT NULL,
  order_key     VARCHAR(255)     CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  dedup_key     VARCHAR(255)     CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  max_attempts  INT UNSIGNED     NULL,
  timeout_ms    INT UNSIGNED     NULL,
  expires_at    DATETIME(6)      NULL,
  target_host   VARCHAR(64)      CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  shard         TINYINT UNSIGNED NOT NULL,
  created_at    DATETIME(6)      NOT NULL,
  -- The first five are never stored; they keep the numbers of states the same as in the outbox.
  state         ENUM('scheduled', 'claimed', 'awaiting', 'held', 'blocked', 'done', 'dead', 'cancelled', 'expired')
                                 CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  attempt       INT UNSIGNED     NOT NULL,
  failures      INT UNSIGNED     NOT NULL,
  recoveries    INT UNSIGNED     NOT NULL,
  claimed_by    VARCHAR(64)      CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  published_at  DATETIME(6)      NULL,
  finished_at   DATETIME(6)      NOT NULL,
  error_class   VARCHAR(64)      CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  last_error    TEXT             CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  progress      DOUBLE           NULL,
  checkpoint    MEDIUMTEXT       CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  result        MEDIUMTEXT       CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  keep_until    DATETIME(6)      NOT NULL,

  PRIMARY KEY (id, keep_until),
  KEY ix_message_id (message_id),
  KEY ix_task_key (task_key),
  KEY ix_route_finished (route, finished_at),
  KEY ix_state_finished (state, finished_at),
  CONSTRAINT `{table}_history_state` CHECK (state IN ('done', 'dead', 'cancelled', 'expired'))
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC
PARTITION BY RANGE COLUMNS (keep_until) (PARTITION p_later VALUES LESS THAN (MAXVALUE));

-- One row per failed attempt, per result of a consumer, and, where the route asks for it, per attempt.
CREATE TABLE IF NOT EXISTS `{table}_attempts` (
  seq           BIGINT UNSIGNED  NOT NULL AUTO_INCREMENT,
  message_id    VARCHAR(64)      CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  attempt       INT UNSIGNED     NOT NULL,
  kind          ENUM('failure', 'result', 'success') CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  -- What followed: the name of an event in core/task_state.h.
  outcome       VARCHAR(16)      CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  task_id       BIGINT UNSIGNED  NOT NULL,
  route         VARCHAR(64)      CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  claimed_by    VARCHAR(64)      CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  due_at        DATETIME(6)      NOT NULL,
  published_at  DATETIME(6)      NULL,
  finished_at   DATETIME(6)      NOT NULL,
  error_class   VARCHAR(64)      CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  error         MEDIUMTEXT       CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  result        MEDIUMTEXT       CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,

  PRIMARY KEY (seq, finished_at),
  KEY ix_message_id (message_id, attempt),
  KEY ix_route_finished (route, finished_at)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC
PARTITION BY RANGE COLUMNS (finished_at) (PARTITION p_later VALUES LESS THAN (MAXVALUE));

-- Result records that could not be read or belong to no task. The same record received again only counts up.
CREATE TABLE IF NOT EXISTS `{table}_quarantine` (
  id            BIGINT UNSIGNED  NOT NULL AUTO_INCREMENT,
  source        VARCHAR(64)      CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  origin        VARCHAR(255)     CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  reason        VARCHAR(512)     CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  sha256        BINARY(32)       NOT NULL,
  length        BIGINT UNSIGNED  NOT NULL,
  body          BLOB             NOT NULL,
  received_at   DATETIME(6)      NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
  seen          INT UNSIGNED     NOT NULL DEFAULT 1,

  PRIMARY KEY (id),
  UNIQUE KEY ux_record (source, origin, sha256),
  KEY ix_received_at (received_at)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;
