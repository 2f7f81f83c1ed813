-- Fails when one of the shards is not ours any more. Until our commit nobody can take one of them over.
SET @duebox_guard = 9223372036854775807 +
  ABS((SELECT COUNT(*) FROM `{table}_shards` WHERE {leases} LOCK IN SHARE MODE) - {count})
