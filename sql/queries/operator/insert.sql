-- A task from the command line, with only those columns that were given.
INSERT INTO `{table}` ({names}) VALUES ({values})
