-- Whether a command has said here that it runs. The rows of daemons are in every copy of a database.
SELECT id FROM `{table}_instances` WHERE id = {id} AND kind = 'application'
