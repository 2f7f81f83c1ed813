-- Where the binlog ends now. Unlike SHOW MASTER STATUS this needs no right.
SHOW STATUS WHERE Variable_name IN ('Binlog_snapshot_file', 'Binlog_snapshot_position')
