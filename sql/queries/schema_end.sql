-- A migration is complete.
UPDATE `{table}_schema` SET applied_at = UTC_TIMESTAMP(6) WHERE version = {version}
