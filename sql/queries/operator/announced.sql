-- Which of these commands have said here that they run. The rows of daemons are in every copy of a database.
SELECT id FROM `{table}_instances` WHERE id IN ({ids}) AND kind = 'application'
