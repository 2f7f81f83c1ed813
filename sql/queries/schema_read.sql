-- Migrations that were begun, and whether they are complete.
SELECT version, checksum, statements_done, applied_at IS NOT NULL FROM `{table}_schema` ORDER BY version
