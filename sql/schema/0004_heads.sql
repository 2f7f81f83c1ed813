-- Heads of order keys: tasks that failed and are to be tried again before others of their order_key, which are in state
-- blocked meanwhile. A head whose task is over means nothing; the daemon removes it at leisure.
CREATE TABLE IF NOT EXISTS `{table}_heads` (
  head_id       BIGINT UNSIGNED  NOT NULL,
  shard         TINYINT UNSIGNED NOT NULL,
  route         VARCHAR(64)      CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  order_key     VARCHAR(255)     CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  PRIMARY KEY (head_id),
  KEY ix_shard (shard),
  KEY ix_order_key (route, order_key)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;
