-- What operators have set for routes.
SELECT route, paused, reason FROM `{table}_routes` ORDER BY route
