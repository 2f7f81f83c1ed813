-- Positions of the rows of a group, or of those of several priorities, between two others, the first or the last of
-- them, and whether they are for our host and have an order_key.
-- LENGTH: as in next_due.
SELECT id, next_at, {host} IS TRUE, LENGTH(order_key) > 0, {number} FROM `{table}` FORCE INDEX (ix_next)
WHERE state = {state} AND shard = {shard} AND route = {route} AND priority IN ({priorities})
  AND next_at <= UTC_TIMESTAMP(6) + INTERVAL {ahead_us} MICROSECOND AND (next_at > {after_at} OR next_at = {after_at} AND id > {after_id})
  AND (next_at < {until_at} OR next_at = {until_at} AND id <= {until_id}) AND LENGTH(message_id) >= 0
ORDER BY priority {direction}, next_at {direction}, id {direction} LIMIT {limit}
