-- Whether somebody has set a route since then.
SELECT COUNT(*) FROM `{table}_routes` WHERE route = {route} AND changed_at > {since}
