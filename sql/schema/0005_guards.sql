-- What the table refuses, what says that a row was changed, and an explicit NULL that means the default.
-- The one ALTER of the outbox copies the table: writes wait meanwhile (see README.md for how long). Each ALTER adds a
-- column, so that one which is sent again after it was done fails by the name of that column, and counts as done. The UPDATEs before an ALTER that failed
-- are done again with it.

-- Rows that the rules below refuse and that a lenient sql_mode let in: put right first, or the ALTER is refused.
UPDATE `{table}` SET lease_until = IF(state IN ('claimed', 'awaiting'), UTC_TIMESTAMP(6), NULL)
WHERE lease_until < '1970-01-01 00:00:00' OR lease_until >= '2200-01-01 00:00:00';
UPDATE `{table}` SET first_due_at = NULL
WHERE first_due_at < '1970-01-01 00:00:00' OR first_due_at >= '2200-01-01 00:00:00';
UPDATE `{table}` SET published_at = NULL
WHERE published_at < '1970-01-01 00:00:00' OR published_at >= '2200-01-01 00:00:00';
UPDATE `{table}` SET created_at = UTC_TIMESTAMP(6)
WHERE created_at < '1970-01-01 00:00:00' OR created_at >= '2200-01-01 00:00:00';
UPDATE `{table}` SET attempt = LEAST(attempt, 1000000000), failures = LEAST(failures, 1000000000),
  recoveries = LEAST(recoveries, 1000000000)
WHERE attempt > 1000000000 OR failures > 1000000000 OR recoveries > 1000000000;
UPDATE `{table}` SET due_at = due_at + INTERVAL delay_ms * 1000 MICROSECOND WHERE delay_ms > 0 AND due_at = created_at;

ALTER TABLE `{table}`
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
    CRC32(order_key) MOD {shards}, IF(message_id = '', 255, CRC32(message_id) MOD {shards})))),
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

  DROP CONSTRAINT `{table}_message_id`,
  ADD CONSTRAINT `{table}_message_id` CHECK (LENGTH(message_id) BETWEEN 1 AND 64 AND message_id NOT REGEXP '[^!-~]'),
  DROP CONSTRAINT `{table}_route`,
  ADD CONSTRAINT `{table}_route` CHECK (LENGTH(route) BETWEEN 1 AND 64 AND route NOT REGEXP '[^!-~]'),
  DROP CONSTRAINT `{table}_delay_ms`,
  ADD CONSTRAINT `{table}_delay_ms` CHECK (delay_ms BETWEEN 0 AND 315360000000),
  DROP CONSTRAINT `{table}_dedup_key`,
  ADD CONSTRAINT `{table}_dedup_key` CHECK (CHAR_LENGTH(dedup_key) BETWEEN 1 AND 255),
  DROP CONSTRAINT `{table}_target_host`,
  ADD CONSTRAINT `{table}_target_host` CHECK ((target_host = '') = (shard <> 63) AND target_host NOT LIKE '% '
    AND CHAR_LENGTH(target_host) <= 64),
  DROP CONSTRAINT `{table}_lease_until`,
  ADD CONSTRAINT `{table}_lease_until` CHECK ((state NOT IN ('claimed', 'awaiting') OR lease_until IS NOT NULL)
    AND COALESCE(lease_until, '2000-01-01 00:00:00') >= '1970-01-01 00:00:00'
    AND COALESCE(lease_until, '2000-01-01 00:00:00') < '2200-01-01 00:00:00'),
  -- The due time of a DEFAULT that was computed before the delay was there: the task would leave at once.
  ADD CONSTRAINT `{table}_due_at_default` CHECK (delay_ms = 0 OR due_at IS NULL OR due_at <> created_at),
  ADD CONSTRAINT `{table}_task_key` CHECK (CHAR_LENGTH(task_key) <= 255),
  ADD CONSTRAINT `{table}_order_key` CHECK (CHAR_LENGTH(order_key) <= 255),
  ADD CONSTRAINT `{table}_first_due_at` CHECK (first_due_at >= '1970-01-01 00:00:00'
    AND first_due_at < '2200-01-01 00:00:00'),
  ADD CONSTRAINT `{table}_published_at` CHECK (published_at >= '1970-01-01 00:00:00'
    AND published_at < '2200-01-01 00:00:00'),
  ADD CONSTRAINT `{table}_created_at` CHECK (created_at >= '1970-01-01 00:00:00'
    AND created_at < '2200-01-01 00:00:00'),
  ADD CONSTRAINT `{table}_counters` CHECK (attempt <= 2000000000 AND failures <= 2000000000
    AND recoveries <= 2000000000 AND revision <= 2000000000),
  ADD CONSTRAINT `{table}_move_to_shard` CHECK (move_to_shard < {shards} OR move_to_shard = 63),
  ADD CONSTRAINT `{table}_move_to_host` CHECK (move_to_host NOT LIKE '% ' AND CHAR_LENGTH(move_to_host) <= 64);

-- UUID version 7: sorted by milliseconds, with 74 random bits. All but two are of RANDOM_BYTES, which is called once: a
-- call takes a server as long as all the rest. Each HEX is put into ASCII explicitly: it is in the character set of
-- whichever session opens the table, and MariaDB computes what it has to convert by itself only once, for all sessions
-- and as long as the table is open. By itself, since MySQL takes an ALTER that adds columns and has a random default in
-- it for unsafe to replicate.
ALTER TABLE `{table}`
  MODIFY message_id VARCHAR(65) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT (LOWER(CONCAT(
    INSERT(LPAD(CONVERT(HEX(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000) USING ascii),
      12, '0'), 9, 0, '-'), '-7',
    INSERT(INSERT(CONVERT(HEX(RANDOM_BYTES(9)) USING ascii), 7, 0, '-'),
      4, 0, CONCAT('-', CONVERT(HEX(8 + FLOOR(RAND() * 4)) USING ascii))))));

-- The history says which content was sent last.
ALTER TABLE `{table}_history` ADD COLUMN revision INT UNSIGNED NOT NULL DEFAULT 0;

-- More can follow from an attempt than had room here.
ALTER TABLE `{table}_attempts`
  MODIFY outcome VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL;

-- Which task became a head of its order_key, and after how many failures: another one that was given its id, or the same
-- that came back with a fresh budget, is none.
ALTER TABLE `{table}_heads`
  ADD COLUMN message_id VARCHAR(65) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT '',
  ADD COLUMN failures INT UNSIGNED NOT NULL DEFAULT 0;
