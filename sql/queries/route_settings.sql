-- What operators have set for routes.
SELECT route, paused, reason, changed_at FROM `{table}_routes` ORDER BY route
