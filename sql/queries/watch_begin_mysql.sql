-- What a replica says of itself before it asks MySQL for the binlog: it knows checksums, and wants a sign of life every
-- so many nanoseconds.
SET @source_binlog_checksum = 'NONE', @source_heartbeat_period = {period}
