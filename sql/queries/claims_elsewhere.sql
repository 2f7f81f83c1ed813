-- Bound tasks with an order_key that another instance has claimed, whether it lives or not.
SELECT id, failures, route, order_key FROM `{table}` FORCE INDEX (ix_next)
WHERE state = 'claimed' AND shard = 63 AND route = {route} AND LENGTH(order_key) > 0 AND target_host = {host}
  AND NOT claimed_by <=> {instance}
