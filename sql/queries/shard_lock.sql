-- A shard's row for us alone until the end of the transaction, without waiting for whoever has it.
SELECT shard FROM `{table}_shards` WHERE shard = {shard} FOR UPDATE NOWAIT
