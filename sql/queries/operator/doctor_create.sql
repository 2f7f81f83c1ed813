-- What a table is, for whoever may read it: information_schema shows others' CHECKs to few.
SHOW CREATE TABLE `{table}{suffix}`
