-- Finished rows that nobody wants to keep, or that are in the history by now: all of one state and attempt. By the
-- index, however few rows there are: a scan would wait for rows that others hold.
DELETE o FROM `{table}` o FORCE INDEX (PRIMARY)
WHERE o.id IN ({ids}) AND {identity} AND o.state = {state} AND o.attempt = {attempt} AND o.shard IN ({shards}) AND {fence}
