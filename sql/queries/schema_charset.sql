-- The character set that new tables and literals in their defaults get.
SELECT @@character_set_database
