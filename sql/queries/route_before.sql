-- How a route was set, for the audit.
SELECT paused, reason FROM `{table}_routes` WHERE route = {route} FOR UPDATE
