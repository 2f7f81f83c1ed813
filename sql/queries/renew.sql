-- Leases that are still ours run on.
UPDATE `{table}_shards` SET lease_until = UTC_TIMESTAMP(6) + INTERVAL {lease_us} MICROSECOND
WHERE owner = {owner} AND ({leases})
