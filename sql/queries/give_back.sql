-- A shard is free and clean; the new epoch ends all rights of the one that gives it back.
UPDATE `{table}_shards` SET epoch = epoch + 1, owner = NULL, lease_until = NULL, unclean = FALSE
WHERE shard = {shard} AND epoch = {epoch} AND owner = {owner}
