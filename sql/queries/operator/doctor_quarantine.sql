-- Result records that fitted no task.
SELECT COUNT(*), MAX(received_at) FROM `{table}_quarantine`
