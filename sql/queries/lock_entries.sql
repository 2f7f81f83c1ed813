-- Those of the rows of which nobody else holds anything, locked with all their entries in other indexes. A change locks
-- those too, and a server that cannot be told to fail instead of waiting (MySQL) would wait for each in turn.
SELECT o.id FROM `{table}` o FORCE INDEX (PRIMARY)
STRAIGHT_JOIN `{table}` m FORCE INDEX (ux_message_id) ON m.message_id = o.message_id AND m.id = o.id
STRAIGHT_JOIN `{table}` n FORCE INDEX (ix_next) ON n.state = o.state AND n.shard = o.shard AND n.route = o.route
  AND n.priority = o.priority AND n.next_at <=> o.next_at AND n.id = o.id
STRAIGHT_JOIN `{table}` k FORCE INDEX (ix_task_key) ON k.task_key = o.task_key AND k.id = o.id
LEFT JOIN `{table}` d FORCE INDEX (ux_dedup_key) ON d.dedup_key = o.dedup_key AND d.id = o.id
WHERE o.id IN ({ids}) AND (o.dedup_key IS NULL OR d.id IS NOT NULL) ORDER BY o.id FOR UPDATE SKIP LOCKED
