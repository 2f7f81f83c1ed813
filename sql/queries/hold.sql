-- Rows of a route that nobody knows leave the way of the others, and come back when it is known again.
UPDATE `{table}` FORCE INDEX (PRIMARY) SET state = {to}, changed_at = changed_at
WHERE id IN ({ids}) AND state = {from} AND shard = {shard} AND route IN ({routes})
