-- The earliest row of a group from some time on: one seek. It looks at a column that the index does not have, so that the
-- end of the range is checked in the index itself: entries of the next group that this session cannot see, since their
-- transaction is open, would be walked over otherwise, however many there are.
SELECT {number}, next_at FROM `{table}` FORCE INDEX (ix_next)
WHERE state = {state} AND shard = {shard} AND route = {route} AND priority = {priority} AND next_at >= {from_at}
  AND LENGTH(message_id) >= 0
ORDER BY next_at LIMIT 1
