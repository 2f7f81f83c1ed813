-- Rows that no daemon can send, because none has their route: how many of the earliest {most} a route has.
SELECT route, COUNT(*) FROM (SELECT route FROM `{table}` FORCE INDEX (ix_next) WHERE state = 'held' LIMIT {most}) AS held
GROUP BY route ORDER BY COUNT(*) DESC LIMIT {cap}
