-- What people did, and how it was before.
INSERT INTO `{table}_audit` (actor, verb, reason, filter, changed, before_image)
VALUES ({actor}, {verb}, {reason}, {filter}, {changed}, {before})
