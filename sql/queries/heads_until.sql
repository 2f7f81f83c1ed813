-- The last order key of a part of the heads; none for the last part.
SELECT h.route, h.order_key FROM `{table}_heads` h FORCE INDEX (ix_order_key)
WHERE {behind} ORDER BY h.route, h.order_key LIMIT {others}, 1
