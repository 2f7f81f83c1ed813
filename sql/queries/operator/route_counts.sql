-- How many living rows each route has in each state, in one pass over ix_next that ends after {limit} rows.
SELECT route, state, COUNT(*) FROM (
  SELECT route, state FROM `{table}` FORCE INDEX (ix_next) LIMIT {limit}
) AS entries GROUP BY route, state
