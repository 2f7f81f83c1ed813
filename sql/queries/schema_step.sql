-- One more statement of a migration is done.
UPDATE `{table}_schema` SET statements_done = {done} WHERE version = {version}
