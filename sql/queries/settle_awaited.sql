-- Of locked rows whose result was awaited, those that are another task than what was sent (result_lock.sql and
-- result_content.sql): changed since that was recorded, in their content or to a later time.
SELECT id FROM `{table}` FORCE INDEX (PRIMARY)
WHERE id IN ({ids}) AND state = 'awaiting' AND changed_at <> created_at - INTERVAL 1 MICROSECOND
  AND MOD(TIMESTAMPDIFF(MICROSECOND, created_at, changed_at), 900000000) <> 0
  AND (NOT sent_digest <=> {content}
    OR COALESCE(due_at, {by_delay}) > published_at) ORDER BY id
