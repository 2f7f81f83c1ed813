-- A shard is free, and clean but for outcomes that could not be written; the new epoch ends all rights of the one that
-- gives it back.
UPDATE `{table}_shards` SET epoch = epoch + 1, owner = NULL, lease_until = NULL, unclean = {unclean}
WHERE shard = {shard} AND epoch = {epoch} AND owner = {owner}
