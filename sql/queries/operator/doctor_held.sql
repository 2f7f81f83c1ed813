-- Rows that no daemon can send, because none has their route.
SELECT route, COUNT(*) FROM `{table}` FORCE INDEX (ix_next) WHERE state = 'held' GROUP BY route ORDER BY COUNT(*) DESC LIMIT {cap}
