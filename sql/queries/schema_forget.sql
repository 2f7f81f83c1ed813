-- A migration of which nothing was done counts as not begun: the version before works on.
DELETE FROM `{table}_schema` WHERE version = {version} AND statements_done = 0 AND applied_at IS NULL
