-- How much the purge of InnoDB is behind; needs the PROCESS right.
SELECT `COUNT` FROM information_schema.INNODB_METRICS WHERE `NAME` = 'trx_rseg_history_len'
