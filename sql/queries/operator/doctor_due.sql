-- What would be sent, now or when it is taken back: due, claimed and awaiting tasks of each route.
SELECT route, SUM(state = 'scheduled'), MIN(IF(state = 'scheduled', COALESCE(due_at, next_at), NULL)), SUM(state = 'claimed'), SUM(state = 'awaiting')
FROM `{table}` FORCE INDEX (ix_next)
WHERE state IN ('scheduled', 'claimed', 'awaiting') AND (state <> 'scheduled' OR next_at <= UTC_TIMESTAMP(6))
GROUP BY route ORDER BY 2 DESC, route LIMIT {cap}
