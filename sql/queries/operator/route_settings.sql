-- What people have set for routes.
SELECT route, paused, reason, changed_by, changed_at FROM `{table}_routes`
