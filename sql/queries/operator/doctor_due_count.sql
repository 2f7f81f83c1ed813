-- How many of them a route has in a state, without looking further than {cap}.
SELECT COUNT(*) FROM (
  SELECT 1 FROM `{table}` FORCE INDEX (ix_next)
  WHERE state = {state} AND shard IN ({shards}) AND route = {route} AND priority IN (1, 2, 3, 4, 5, 6, 7, 8, 9)
    AND (state <> 'scheduled' OR next_at <= UTC_TIMESTAMP(6)) LIMIT {cap}
) AS matching
