-- Settings of the server that duebox depends on.
SHOW GLOBAL VARIABLES WHERE Variable_name IN ('version', 'version_comment', 'read_only', 'super_read_only',
  'innodb_read_only', 'log_bin', 'binlog_format', 'max_allowed_packet', 'sql_mode', 'innodb_flush_log_at_trx_commit',
  'sync_binlog', 'wsrep_on', 'group_replication_single_primary_mode', 'group_replication_group_name',
  'lower_case_table_names')
