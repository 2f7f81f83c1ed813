-- Gives the columns that tell one thing from another the collations back by which they do, byte by byte: the definitions that
-- the migrations of schema/ end with. `duebox migrate` runs it where somebody has converted one of them.
ALTER TABLE `{table}`
  MODIFY message_id VARCHAR(65) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT (LOWER(CONCAT(
    INSERT(LPAD(CONVERT(HEX(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000) USING ascii),
      12, '0'), 9, 0, '-'), '-7',
    INSERT(INSERT(CONVERT(HEX(RANDOM_BYTES(9)) USING ascii), 7, 0, '-'),
      4, 0, CONCAT('-', CONVERT(HEX(8 + FLOOR(RAND() * 4)) USING ascii)))))),
  MODIFY route VARCHAR(65) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  MODIFY task_key VARCHAR(256) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT '',
  MODIFY order_key VARCHAR(256) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT '',
  MODIFY dedup_key VARCHAR(256) CHARACTER SET utf8mb4 /*M! COLLATE utf8mb4_nopad_bin */ /*!80017 COLLATE utf8mb4_0900_bin */ NULL,
  MODIFY target_host VARCHAR(65) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT '',
  MODIFY claimed_by VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  MODIFY move_to_host VARCHAR(65) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL;

ALTER TABLE `{table}_history`
  MODIFY message_id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  MODIFY route VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  MODIFY task_key VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  MODIFY order_key VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  MODIFY dedup_key VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  MODIFY target_host VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  MODIFY claimed_by VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL;

ALTER TABLE `{table}_attempts`
  MODIFY message_id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  MODIFY route VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  MODIFY claimed_by VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL;

ALTER TABLE `{table}_heads`
  MODIFY route VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  MODIFY order_key VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  MODIFY message_id VARCHAR(65) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT '';

ALTER TABLE `{table}_routes` MODIFY route VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL;

ALTER TABLE `{table}_shards` MODIFY owner VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL;

ALTER TABLE `{table}_instances` MODIFY id VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL;
