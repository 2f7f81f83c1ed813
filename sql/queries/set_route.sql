-- An operator pauses or resumes a route. A pause without a reason, of a route that is paused already, leaves by whom and
-- why it is. `paused` comes last: the others go by what it was.
INSERT INTO `{table}_routes` (route, paused, reason, changed_by) VALUES ({route}, {paused}, {reason}, {actor})
ON DUPLICATE KEY UPDATE reason = IF(paused AND {paused} AND {reason} = '', reason, {reason}),
  changed_by = IF(paused AND {paused} AND {reason} = '', changed_by, {actor}),
  changed_at = IF(paused AND {paused} AND {reason} = '', changed_at, UTC_TIMESTAMP(6)), paused = {paused}
