-- Of locked rows that were changed, those whose content is what the last attempt sent. A later time than that of its
-- sending counts as a change while the result is awaited.
SELECT message_id FROM `{table}` FORCE INDEX (PRIMARY)
WHERE id IN ({ids}) AND sent_digest = {content}
  AND (state <> 'awaiting' OR COALESCE(due_at, {by_delay}) <= published_at)
