-- Whether an instance is silent: it has not said that it lives for as long as that counts, and no lease of its runs.
SELECT NOT EXISTS (SELECT 1 FROM `{table}_instances` WHERE id = {instance} AND alive_until > UTC_TIMESTAMP(6)
    AND seen_at < UTC_TIMESTAMP(6) + INTERVAL 1 MINUTE)
  AND NOT EXISTS (SELECT 1 FROM `{table}_shards` WHERE owner = {instance} AND {lease_runs})
