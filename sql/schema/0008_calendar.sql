-- Times that are in no calendar. MariaDB takes a month or a day of zero in its strict sql_mode too, as it has it by default
-- ('08:00:00' becomes 2008-00-00), and both servers take the 31st of February with ALLOW_INVALID_DATES: such a task could
-- not be sent. LAST_DAY() of a month of zero is NULL; of a NULL, which is allowed, the whole condition is.
-- The ALTER copies the table, as every one that adds a CHECK does: writes wait meanwhile.
ALTER TABLE `{table}`
  DROP CONSTRAINT `{table}_due_at`,
  ADD CONSTRAINT `{table}_due_at` CHECK (due_at >= '2000-01-01 00:00:00' AND due_at < '2200-01-01 00:00:00'
    AND DAYOFMONTH(due_at) BETWEEN 1 AND COALESCE(DAYOFMONTH(LAST_DAY(due_at)), 0)),
  DROP CONSTRAINT `{table}_expires_at`,
  ADD CONSTRAINT `{table}_expires_at` CHECK (expires_at >= '2000-01-01 00:00:00' AND expires_at < '2200-01-01 00:00:00'
    AND DAYOFMONTH(expires_at) BETWEEN 1 AND COALESCE(DAYOFMONTH(LAST_DAY(expires_at)), 0)),
  DROP CONSTRAINT `{table}_first_due_at`,
  ADD CONSTRAINT `{table}_first_due_at` CHECK (first_due_at >= '1970-01-01 00:00:00'
    AND first_due_at < '2200-01-01 00:00:00'
    AND DAYOFMONTH(first_due_at) BETWEEN 1 AND COALESCE(DAYOFMONTH(LAST_DAY(first_due_at)), 0));
