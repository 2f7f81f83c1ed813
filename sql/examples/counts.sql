-- How much there is of what, and what is overdue.
SELECT route, state, COUNT(*) AS tasks, SUM(next_at <= UTC_TIMESTAMP(6)) AS due, MIN(next_at) AS next_at
FROM outbox GROUP BY route, state ORDER BY route, state;
