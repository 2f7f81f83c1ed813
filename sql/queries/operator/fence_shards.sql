-- (Shard 63 has no owner: what is bound to a host is claimed in the table.)
-- An owner whose lease ran out may only be slow: with a new epoch it can neither renew nor settle any more.
UPDATE `{table}_shards` SET epoch = epoch + 1 WHERE shard IN ({shards}) AND shard < 63
