-- Of locked rows that were changed, those whose content is what the last attempt sent. A later time than that of its
-- sending counts as a change while the result is awaited.
SELECT message_id FROM `{table}` FORCE INDEX (PRIMARY)
WHERE id IN ({ids}) AND sent_digest = {content}
  AND (state <> 'awaiting' OR COALESCE(due_at, created_at + INTERVAL LEAST(GREATEST(delay_ms, 0), 315360000000) * 1000 MICROSECOND) <= published_at)
