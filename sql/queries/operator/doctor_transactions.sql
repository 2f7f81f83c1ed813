-- The oldest open transaction: it keeps the purge from removing what duebox deletes. Needs the PROCESS right.
SELECT trx_mysql_thread_id, TIMESTAMPDIFF(SECOND, trx_started, NOW()) FROM information_schema.INNODB_TRX
ORDER BY trx_started LIMIT 1
