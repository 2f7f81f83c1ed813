-- Of quarantined results the newest that many are enough.
DELETE FROM `{table}_quarantine`
WHERE id < (SELECT newest FROM (SELECT CAST(MAX(id) AS SIGNED) - {keep} AS newest FROM `{table}_quarantine`) q)
ORDER BY id LIMIT 1000
