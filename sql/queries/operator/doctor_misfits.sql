-- Rows that the table's CHECKs refuse and that no daemon reads, one of each group, and ids that come to their end: what is
-- wrong, and what to do. A seek for each group of the index, and up to 10000 bound tasks.
(SELECT 'unreadable tasks', CONCAT('the row with id ', (SELECT o.id FROM `{table}` o FORCE INDEX (ix_next) WHERE o.state = g.state AND o.shard = g.shard
    AND o.route = g.route AND o.priority = g.priority ORDER BY o.next_at DESC LIMIT 1), ' has route ', QUOTE(route), ', state ', QUOTE(state), ', shard ', shard,
    ', priority ', priority, ' and is due at ', last_at, ', which the table does not allow'),
  'correct it with UPDATE, or DELETE it, and correct its client: it had switched CHECKs off'
FROM (SELECT state, shard, route, priority, MAX(next_at) AS last_at FROM `{table}` FORCE INDEX (ix_next)
      GROUP BY state, shard, route, priority) AS g
WHERE state = '' OR shard <> 63 AND shard >= {shard_count}
  OR priority NOT BETWEEN 1 AND 9 OR LENGTH(route) NOT BETWEEN 1 AND 64 OR route REGEXP '[^!-~]'
  OR last_at >= '2200-01-01' LIMIT {cap})
UNION ALL
(SELECT 'unreadable tasks', CONCAT('the row with id ', id, ' is in the shard of bound tasks, and no host can have the name ', QUOTE(target_host)),
  'correct it with UPDATE, or DELETE it, and correct its client: it had switched CHECKs off'
FROM (SELECT id, target_host FROM `{table}` FORCE INDEX (ix_next) WHERE state = 'scheduled' AND shard = 63 LIMIT 10000) AS bound
WHERE target_host = '' OR target_host LIKE '% ' OR LOCATE(CHAR(0), target_host) > 0 OR CHAR_LENGTH(target_host) > 64 LIMIT {cap})
UNION ALL
(SELECT 'ids', CONCAT('the next row id is ', AUTO_INCREMENT, ': somebody inserted an id of their own, and INSERTs end with error 1467'),
  CONCAT('a daemon puts it right within seconds, or within a minute where the task is on its way, unless its user may not ALTER this table or a transaction that has touched it stays open; by hand: DELETE the rows with such ids, then ALTER TABLE `{table}` AUTO_INCREMENT = 1; see sql/README.md')
FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = {name} AND AUTO_INCREMENT > 9223372036854775807)
