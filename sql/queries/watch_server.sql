-- Whether there is a binlog; who we are, as GRANT wants it; in which database.
SELECT @@log_bin, CONCAT('''', REPLACE(CURRENT_USER(), '@', '''@'''), ''''), DATABASE()
