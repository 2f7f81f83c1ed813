-- What a replica says of itself before it asks for the binlog: it knows all events and checksums, and wants a sign of
-- life every so many nanoseconds.
SET @mariadb_slave_capability = 4, @master_binlog_checksum = 'NONE', @master_heartbeat_period = {period}
