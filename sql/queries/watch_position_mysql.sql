-- Where the binlog ends now, as MySQL 8.2 and later say it.
SHOW BINARY LOG STATUS
