-- The earliest row of a group from some time on: one seek.
SELECT {number}, MIN(next_at) FROM `{table}` FORCE INDEX (ix_next)
WHERE state = {state} AND shard = {shard} AND route = {route} AND priority = {priority} AND next_at >= {from_at}
