-- Order keys whose tasks are in several shards, among the {most} tasks that were inserted first.
SELECT MAX(order_key), MAX(route), COUNT(DISTINCT shard), MIN(id), MAX(id) FROM (
  SELECT id, route, order_key, shard FROM `{table}` FORCE INDEX (PRIMARY) ORDER BY id LIMIT {most}
) AS earliest WHERE LENGTH(order_key) > 0 AND shard <> 63
GROUP BY route, CAST(order_key AS BINARY) HAVING COUNT(DISTINCT shard) > 1 LIMIT {cap}
