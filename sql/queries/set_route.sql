-- An operator pauses or resumes a route.
INSERT INTO `{table}_routes` (route, paused, reason, changed_by) VALUES ({route}, {paused}, {reason}, {actor})
ON DUPLICATE KEY UPDATE paused = {paused}, reason = {reason}, changed_by = {actor}, changed_at = UTC_TIMESTAMP(6)
