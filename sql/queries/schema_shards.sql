-- The number of shards that the table was made with. Its default for shard says it, whatever became of the table of
-- shards; where somebody has changed that default, the highest shard there is.
SELECT COALESCE(
  (SELECT NULLIF(REGEXP_SUBSTR(COLUMN_DEFAULT, '(?<=MOD |mod |% )[0-9]+'), '') FROM information_schema.COLUMNS
   WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = {name} AND COLUMN_NAME = 'shard'),
  (SELECT MAX(shard) + 1 FROM `{table}_shards` WHERE shard < 63), 0)
