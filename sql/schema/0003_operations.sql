-- Who runs, what operators have set, what they did, and tasks that come by the calendar.

CREATE TABLE IF NOT EXISTS `{table}_instances` (
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
CREATE TABLE IF NOT EXISTS `{table}_routes` (
  route         VARCHAR(64)      CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  paused        BOOLEAN          NOT NULL DEFAULT FALSE,
  reason        VARCHAR(255)     CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT '',
  changed_by    VARCHAR(64)      CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT '',
  changed_at    DATETIME(6)      NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
  PRIMARY KEY (route)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

-- Tasks that come by the calendar: at next_at a task is inserted and next_at moves on, in one transaction.
CREATE TABLE IF NOT EXISTS `{table}_schedules` (
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
  CONSTRAINT `{table}_schedules_prio` CHECK (priority BETWEEN 1 AND 9)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

-- What people did to tasks and routes, and how it was before.
CREATE TABLE IF NOT EXISTS `{table}_audit` (
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
