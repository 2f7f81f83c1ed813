-- Columns of the outbox that somebody has changed in a way which duebox does not survive unharmed.
SELECT COLUMN_NAME, harm FROM (
  SELECT COLUMN_NAME, CASE
    WHEN COLUMN_NAME IN ('message_id', 'due_at', 'shard', 'created_at', 'headers') AND COALESCE(COLUMN_DEFAULT, 'NULL') = 'NULL'
      THEN 'has no default any more: INSERTs that leave it out fail, or tasks are not due when they should be'
    WHEN COLUMN_NAME = 'changed_at' AND LOWER(EXTRA) NOT LIKE '%on update current_timestamp(6)%'
      THEN 'has no ON UPDATE any more: a change of a task in flight is not noticed, and lost'
    WHEN COLUMN_NAME = 'next_at' AND EXTRA NOT LIKE '%GENERATED%'
      THEN 'is not generated any more: daemons look for tasks by it'
    WHEN DATA_TYPE = 'datetime' AND DATETIME_PRECISION < 6
      THEN 'has no microseconds: tasks leave early or late, and changes are not told apart'
    WHEN COLUMN_NAME IN ('due_at', 'expires_at', 'created_at', 'next_at', 'lease_until') AND DATA_TYPE <> 'datetime'
      THEN 'is no DATETIME any more: the zone of a session would move it'
    WHEN COLUMN_NAME = 'payload' AND DATA_TYPE <> 'longblob'
      THEN 'is no LONGBLOB any more: payloads are cut, converted or refused'
  END AS harm
  FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = {name}
) changed WHERE harm IS NOT NULL ORDER BY COLUMN_NAME
