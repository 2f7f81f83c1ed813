-- How many living rows a route has in a state, without looking further than {cap}.
SELECT COUNT(*) FROM (
  SELECT 1 FROM `{table}` WHERE state = {state} AND shard IN ({shards}) AND route = {route} LIMIT {cap}
) AS matching
