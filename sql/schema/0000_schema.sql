-- Which migrations this table has had. The migrator's own; it never changes.
-- statements_done lets a migration that broke off go on where it stopped, since DDL cannot be rolled back.
CREATE TABLE IF NOT EXISTS `{table}_schema` (
  version         INT UNSIGNED NOT NULL,
  name            VARCHAR(64)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  checksum        CHAR(64)     CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  statements_done INT UNSIGNED NOT NULL DEFAULT 0,
  applied_at      DATETIME(6)  NULL,
  PRIMARY KEY (version)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;
