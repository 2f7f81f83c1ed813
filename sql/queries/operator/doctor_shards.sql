-- How many shards there are, are held, and were left without being given back.
SELECT COUNT(*), COALESCE(SUM(owner IS NOT NULL AND lease_until > UTC_TIMESTAMP(6)
    AND lease_until <= UTC_TIMESTAMP(6) + INTERVAL 11 MINUTE), 0),
  COALESCE(SUM(owner IS NOT NULL AND (lease_until <= UTC_TIMESTAMP(6) OR lease_until > UTC_TIMESTAMP(6) + INTERVAL 11 MINUTE)), 0) FROM `{table}_shards` WHERE shard < 63
