-- Which migrations this table has had. The migrator's own; it never changes.
-- statements_done lets a migration that broke off go on where it stopped, since DDL cannot be rolled back.
CREATE TABLE IF NOT EXISTS `outbox_schema` (
  version         INT UNSIGNED NOT NULL,
  name            VARCHAR(64)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  checksum        CHAR(64)     CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  statements_done INT UNSIGNED NOT NULL DEFAULT 0,
  applied_at      DATETIME(6)  NULL,
  PRIMARY KEY (version)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

-- The shards that spread the outbox over daemons, and the outbox itself.
-- The words in braces are the configured table name and the number of shards. A statement ends with a semicolon at the
-- end of a line. Migrations that were released never change; what changes later comes as a new file.

-- A daemon that holds a shard is alone in it. Each acquisition and each return raises the epoch; every write that
-- settles rows checks it. unclean says that the last owner vanished with claims in its memory.
CREATE TABLE IF NOT EXISTS `outbox_shards` (
  shard         TINYINT UNSIGNED NOT NULL,
  epoch         BIGINT UNSIGNED  NOT NULL DEFAULT 0,
  owner         VARCHAR(64)      CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  lease_until   DATETIME(6)      NULL,
  unclean       BOOLEAN          NOT NULL DEFAULT FALSE,
  PRIMARY KEY (shard)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

INSERT IGNORE INTO `outbox_shards` (shard) VALUES (0),(1),(2);

-- Tasks that are bound to a host have a shard of their own. Nobody leases it: every daemon looks there for its own host
-- and claims in the table.
INSERT IGNORE INTO `outbox_shards` (shard, epoch) VALUES (63, 1);

-- Tasks that are alive. What is finished moves to the history.
CREATE TABLE IF NOT EXISTS `outbox` (
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
    DEFAULT (IF(target_host = '', CRC32(IF(order_key = '', message_id, order_key)) MOD 3, 63)),
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
  CONSTRAINT `outbox_message_id` CHECK (message_id <> '' AND message_id NOT REGEXP '[^!-~]'),
  CONSTRAINT `outbox_route` CHECK (route <> '' AND route NOT REGEXP '[^!-~]'),
  CONSTRAINT `outbox_delay_ms` CHECK (delay_ms <= 315360000000),
  CONSTRAINT `outbox_due_at` CHECK (due_at >= '2000-01-01 00:00:00' AND due_at < '2200-01-01 00:00:00'),
  CONSTRAINT `outbox_expires_at` CHECK (expires_at >= '2000-01-01 00:00:00' AND expires_at < '2200-01-01 00:00:00'),
  CONSTRAINT `outbox_priority` CHECK (priority BETWEEN 1 AND 9),
  CONSTRAINT `outbox_dedup_key` CHECK (dedup_key <> ''),
  CONSTRAINT `outbox_max_attempts` CHECK (max_attempts >= 1),
  CONSTRAINT `outbox_timeout_ms` CHECK (timeout_ms >= 1),
  CONSTRAINT `outbox_shard` CHECK (shard < 3 OR shard = 63),
  CONSTRAINT `outbox_target_host` CHECK ((target_host = '') = (shard <> 63) AND target_host NOT LIKE '% '),
  CONSTRAINT `outbox_state` CHECK (state IN ('scheduled', 'claimed', 'awaiting', 'held', 'blocked')),
  CONSTRAINT `outbox_lease_until` CHECK (state NOT IN ('claimed', 'awaiting') OR lease_until IS NOT NULL),
  CONSTRAINT `outbox_finished_at` CHECK (finished_at IS NULL)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

INSERT IGNORE INTO `outbox_schema` (version, name, checksum) VALUES (1, 'outbox', '1dd8e295fb475df83e5eed3c479ad3a03220bfb0cecadea87f42af50282235ee');
UPDATE `outbox_schema` SET applied_at = UTC_TIMESTAMP(6) WHERE version = 1;

-- What is over: finished tasks, their attempts, and results that fitted nothing. Partitioned by time and dropped by
-- partition; the daemon adds partitions ahead.

CREATE TABLE IF NOT EXISTS `outbox_history` (
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
  CONSTRAINT `outbox_history_state` CHECK (state IN ('done', 'dead', 'cancelled', 'expired'))
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC
PARTITION BY RANGE COLUMNS (keep_until) (PARTITION p_later VALUES LESS THAN (MAXVALUE));

-- One row per failed attempt, per result of a consumer, and, where the route asks for it, per attempt.
CREATE TABLE IF NOT EXISTS `outbox_attempts` (
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
CREATE TABLE IF NOT EXISTS `outbox_quarantine` (
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

INSERT IGNORE INTO `outbox_schema` (version, name, checksum) VALUES (2, 'history', '6b92ea22ec5fbb4316bd04104ea51c5c465cdc86986e815b6a1b9445165ccea6');
UPDATE `outbox_schema` SET applied_at = UTC_TIMESTAMP(6) WHERE version = 2;

-- Who runs, what operators have set, what they did, and tasks that come by the calendar.

CREATE TABLE IF NOT EXISTS `outbox_instances` (
  id            VARCHAR(64)      CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  kind          ENUM('daemon', 'application') CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT 'daemon',
  host          VARCHAR(255)     CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  -- Of a daemon: its HTTP API. Of an application: the base URL of its handlers.
  url           VARCHAR(512)     CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT '',
  -- Of an application: the routes it handles, a JSON array of names.
  routes        MEDIUMTEXT       CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT ('[]'),
  version       VARCHAR(64)      CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT '',
  pid           BIGINT           NOT NULL DEFAULT 0,
  started_at    DATETIME(6)      NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
  seen_at       DATETIME(6)      NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
  alive_until   DATETIME(6)      NOT NULL,
  PRIMARY KEY (id)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

-- What people have set for a route; a route without a row here runs as configured.
CREATE TABLE IF NOT EXISTS `outbox_routes` (
  route         VARCHAR(64)      CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  paused        BOOLEAN          NOT NULL DEFAULT FALSE,
  reason        VARCHAR(255)     CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT '',
  changed_by    VARCHAR(64)      CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT '',
  changed_at    DATETIME(6)      NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
  PRIMARY KEY (route)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

-- Tasks that come by the calendar: at next_at a task is inserted and next_at moves on, in one transaction.
CREATE TABLE IF NOT EXISTS `outbox_schedules` (
  name          VARCHAR(64)      CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  -- A cron line, or "@every <duration>".
  cron          VARCHAR(255)     CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  time_zone     VARCHAR(64)      CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT 'UTC',
  route         VARCHAR(64)      CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  payload       LONGBLOB         NOT NULL,
  headers       TEXT             CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT ('{}'),
  task_key      VARCHAR(255)     CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT '',
  priority      TINYINT UNSIGNED NOT NULL DEFAULT 5,
  -- Times that passed while nobody ran: fire once for all of them, or not at all.
  missed        ENUM('once', 'skip') CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT 'once',
  -- While the task of the time before is alive: skip this time, or insert another.
  overlap       ENUM('skip', 'allow') CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT 'skip',
  paused        BOOLEAN          NOT NULL DEFAULT FALSE,
  next_at       DATETIME(6)      NULL,
  last_at       DATETIME(6)      NULL,
  last_message_id VARCHAR(64)    CHARACTER SET ascii COLLATE ascii_bin NULL,
  last_error    TEXT             CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  created_at    DATETIME(6)      NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
  changed_at    DATETIME(6)      NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
  PRIMARY KEY (name),
  KEY ix_next_at (next_at),
  CONSTRAINT `outbox_schedules_prio` CHECK (priority BETWEEN 1 AND 9)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

-- What people did to tasks and routes, and how it was before.
CREATE TABLE IF NOT EXISTS `outbox_audit` (
  id            BIGINT UNSIGNED  NOT NULL AUTO_INCREMENT,
  at            DATETIME(6)      NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
  actor         VARCHAR(64)      CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  verb          VARCHAR(32)      CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  reason        VARCHAR(512)     CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT '',
  filter        TEXT             CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  changed       BIGINT UNSIGNED  NOT NULL,
  -- JSON: the old values of what was changed, enough to undo it.
  before_image  LONGTEXT         CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  PRIMARY KEY (id),
  KEY ix_at (at)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

INSERT IGNORE INTO `outbox_schema` (version, name, checksum) VALUES (3, 'operations', '9a3fb6d33d3328f8caf2eb08b7ab2d91e7d7a8098034aaea5ba0bf46a1dcd6a2');
UPDATE `outbox_schema` SET applied_at = UTC_TIMESTAMP(6) WHERE version = 3;

-- Heads of order keys: tasks that failed and are to be tried again before others of their order_key, which are in state
-- blocked meanwhile. A head whose task is over means nothing; the daemon removes it at leisure.
CREATE TABLE IF NOT EXISTS `outbox_heads` (
  head_id       BIGINT UNSIGNED  NOT NULL,
  shard         TINYINT UNSIGNED NOT NULL,
  route         VARCHAR(64)      CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  order_key     VARCHAR(255)     CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  PRIMARY KEY (head_id),
  KEY ix_shard (shard),
  KEY ix_order_key (route, order_key)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

INSERT IGNORE INTO `outbox_schema` (version, name, checksum) VALUES (4, 'heads', '2437a277364dfc43e1061d9eff51d70b606f7cbc1ecf4f97d5c19bcc7cec726e');
UPDATE `outbox_schema` SET applied_at = UTC_TIMESTAMP(6) WHERE version = 4;

-- What the table refuses, what says that a row was changed, and an explicit NULL that means the default.
-- The one ALTER of the outbox copies the table: writes wait meanwhile (see README.md for how long). Each ALTER adds a
-- column, so that one which is sent again after it was done fails by the name of that column, and counts as done. The UPDATEs before an ALTER that failed
-- are done again with it.

-- Rows that the rules below refuse and that a lenient sql_mode let in: put right first, or the ALTER is refused.
UPDATE `outbox` SET lease_until = IF(state IN ('claimed', 'awaiting'), UTC_TIMESTAMP(6), NULL)
WHERE lease_until < '1970-01-01 00:00:00' OR lease_until >= '2200-01-01 00:00:00';
UPDATE `outbox` SET first_due_at = NULL
WHERE first_due_at < '1970-01-01 00:00:00' OR first_due_at >= '2200-01-01 00:00:00';
UPDATE `outbox` SET published_at = NULL
WHERE published_at < '1970-01-01 00:00:00' OR published_at >= '2200-01-01 00:00:00';
UPDATE `outbox` SET created_at = UTC_TIMESTAMP(6)
WHERE created_at < '1970-01-01 00:00:00' OR created_at >= '2200-01-01 00:00:00';
UPDATE `outbox` SET attempt = LEAST(attempt, 1000000000), failures = LEAST(failures, 1000000000),
  recoveries = LEAST(recoveries, 1000000000)
WHERE attempt > 1000000000 OR failures > 1000000000 OR recoveries > 1000000000;
UPDATE `outbox` SET due_at = due_at + INTERVAL delay_ms * 1000 MICROSECOND WHERE delay_ms > 0 AND due_at = created_at;

ALTER TABLE `outbox`
  -- One character wider than what is allowed, so that what a lenient sql_mode cuts is still too long.
  MODIFY route VARCHAR(65) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  MODIFY task_key VARCHAR(256) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT '',
  MODIFY order_key VARCHAR(256) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT '',
  MODIFY target_host VARCHAR(65) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT '',
  -- Keys that differ by spaces at the end are different keys. Each server reads its own name of such a collation.
  MODIFY dedup_key VARCHAR(256) CHARACTER SET utf8mb4 /*M! COLLATE utf8mb4_nopad_bin */ /*!80017 COLLATE utf8mb4_0900_bin */ NULL,
  -- Signed: a lenient sql_mode would make 0 of what is negative.
  MODIFY delay_ms BIGINT NOT NULL DEFAULT 0,
  -- NULL, which some clients write for every column they know nothing of, is the default too.
  MODIFY due_at DATETIME(6) NULL DEFAULT (UTC_TIMESTAMP(6) + INTERVAL delay_ms * 1000 MICROSECOND),
  -- A default that is written as the word DEFAULT is computed from the columns before it in the INSERT: without any that
  -- the shard depends on it is one that the table refuses.
  MODIFY shard TINYINT UNSIGNED NOT NULL DEFAULT (IF(target_host <> '', 63, IF(LENGTH(order_key) > 0,
    CRC32(order_key) MOD 3, IF(message_id = '', 255, CRC32(message_id) MOD 3)))),
  -- A waiting row that is to go elsewhere comes before all others of its group, whenever it is due. One with an order_key
  -- keeps its place: those before it in its key go first.
  MODIFY next_at DATETIME(6) GENERATED ALWAYS AS (IF(state IN ('claimed', 'awaiting'), lease_until,
    IF(state = 'scheduled' AND LENGTH(order_key) = 0 AND (move_to_shard IS NOT NULL OR move_to_host IS NOT NULL),
       TIMESTAMP'2000-01-01 00:00:00',
       COALESCE(due_at, created_at + INTERVAL delay_ms * 1000 MICROSECOND)))) STORED,
  -- Another one after every change by anybody but duebox. By the session's clock: it says that, not when.
  ADD COLUMN changed_at DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6),
  -- How often the content was changed while a copy was on its way.
  ADD COLUMN revision INT UNSIGNED NOT NULL DEFAULT 0,
  -- Of the content that the last attempt sent, once that is recorded.
  ADD COLUMN sent_digest BIGINT UNSIGNED NULL,
  -- On which topic or queue the last copy that left told its consumer to answer, as a digest.
  ADD COLUMN answer_to BIGINT UNSIGNED NULL,
  -- The epoch of the shard's lease under which the row was claimed.
  ADD COLUMN claim_epoch BIGINT UNSIGNED NULL,
  -- Where the row is to go: the holder of its shard moves it.
  ADD COLUMN move_to_shard TINYINT UNSIGNED NULL,
  ADD COLUMN move_to_host VARCHAR(65) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,

  DROP CONSTRAINT `outbox_message_id`,
  ADD CONSTRAINT `outbox_message_id` CHECK (LENGTH(message_id) BETWEEN 1 AND 64 AND message_id NOT REGEXP '[^!-~]'),
  DROP CONSTRAINT `outbox_route`,
  ADD CONSTRAINT `outbox_route` CHECK (LENGTH(route) BETWEEN 1 AND 64 AND route NOT REGEXP '[^!-~]'),
  DROP CONSTRAINT `outbox_delay_ms`,
  ADD CONSTRAINT `outbox_delay_ms` CHECK (delay_ms BETWEEN 0 AND 315360000000),
  DROP CONSTRAINT `outbox_dedup_key`,
  ADD CONSTRAINT `outbox_dedup_key` CHECK (CHAR_LENGTH(dedup_key) BETWEEN 1 AND 255),
  DROP CONSTRAINT `outbox_target_host`,
  ADD CONSTRAINT `outbox_target_host` CHECK ((target_host = '') = (shard <> 63) AND target_host NOT LIKE '% '
    AND CHAR_LENGTH(target_host) <= 64),
  DROP CONSTRAINT `outbox_lease_until`,
  ADD CONSTRAINT `outbox_lease_until` CHECK ((state NOT IN ('claimed', 'awaiting') OR lease_until IS NOT NULL)
    AND COALESCE(lease_until, '2000-01-01 00:00:00') >= '1970-01-01 00:00:00'
    AND COALESCE(lease_until, '2000-01-01 00:00:00') < '2200-01-01 00:00:00'),
  -- The due time of a DEFAULT that was computed before the delay was there: the task would leave at once.
  ADD CONSTRAINT `outbox_due_at_default` CHECK (delay_ms = 0 OR due_at IS NULL OR due_at <> created_at),
  ADD CONSTRAINT `outbox_task_key` CHECK (CHAR_LENGTH(task_key) <= 255),
  ADD CONSTRAINT `outbox_order_key` CHECK (CHAR_LENGTH(order_key) <= 255),
  ADD CONSTRAINT `outbox_first_due_at` CHECK (first_due_at >= '1970-01-01 00:00:00'
    AND first_due_at < '2200-01-01 00:00:00'),
  ADD CONSTRAINT `outbox_published_at` CHECK (published_at >= '1970-01-01 00:00:00'
    AND published_at < '2200-01-01 00:00:00'),
  ADD CONSTRAINT `outbox_created_at` CHECK (created_at >= '1970-01-01 00:00:00'
    AND created_at < '2200-01-01 00:00:00'),
  ADD CONSTRAINT `outbox_counters` CHECK (attempt <= 2000000000 AND failures <= 2000000000
    AND recoveries <= 2000000000 AND revision <= 2000000000),
  ADD CONSTRAINT `outbox_move_to_shard` CHECK (move_to_shard < 3 OR move_to_shard = 63),
  ADD CONSTRAINT `outbox_move_to_host` CHECK (move_to_host NOT LIKE '% ' AND CHAR_LENGTH(move_to_host) <= 64);

-- UUID version 7: sorted by milliseconds, with 74 random bits. All but two are of RANDOM_BYTES, which is called once: a
-- call takes a server as long as all the rest. Each HEX is put into ASCII explicitly: it is in the character set of
-- whichever session opens the table, and MariaDB computes what it has to convert by itself only once, for all sessions
-- and as long as the table is open. By itself, since MySQL takes an ALTER that adds columns and has a random default in
-- it for unsafe to replicate.
ALTER TABLE `outbox`
  MODIFY message_id VARCHAR(65) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT (LOWER(CONCAT(
    INSERT(LPAD(CONVERT(HEX(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000) USING ascii),
      12, '0'), 9, 0, '-'), '-7',
    INSERT(INSERT(CONVERT(HEX(RANDOM_BYTES(9)) USING ascii), 7, 0, '-'),
      4, 0, CONCAT('-', CONVERT(HEX(8 + FLOOR(RAND() * 4)) USING ascii))))));

-- The history says which content was sent last.
ALTER TABLE `outbox_history` ADD COLUMN revision INT UNSIGNED NOT NULL DEFAULT 0;

-- More can follow from an attempt than had room here.
ALTER TABLE `outbox_attempts`
  MODIFY outcome VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL;

-- Which task became a head of its order_key, and after how many failures: another one that was given its id, or the same
-- that came back with a fresh budget, is none.
ALTER TABLE `outbox_heads`
  ADD COLUMN message_id VARCHAR(65) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT '',
  ADD COLUMN failures INT UNSIGNED NOT NULL DEFAULT 0;

INSERT IGNORE INTO `outbox_schema` (version, name, checksum) VALUES (5, 'guards', 'ee768b76bb7ecfe4fa4a6ff12e3751efea8449596f6a333c7a463020af7cc545');
UPDATE `outbox_schema` SET applied_at = UTC_TIMESTAMP(6) WHERE version = 5;

-- Tasks that were in flight when 0005 added changed_at. It gave all rows the time of its ALTER, by which each of these
-- counted as changed since it was sent, and was sent again when its result did not come. Recorded as what they are as
-- far as anybody knows: unchanged; and with an epoch, as those that were published without a recorded claim, so that a
-- change from now on counts.
UPDATE `outbox` FORCE INDEX (ix_next) SET changed_at = created_at, claim_epoch = 0
WHERE state IN ('claimed', 'awaiting') AND claim_epoch IS NULL;

INSERT IGNORE INTO `outbox_schema` (version, name, checksum) VALUES (6, 'in_flight', '9c493a40c61d628947435acc9309540e26908914faa85f3ce939b3bc34e34d93');
UPDATE `outbox_schema` SET applied_at = UTC_TIMESTAMP(6) WHERE version = 6;
