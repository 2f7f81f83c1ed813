-- Whether the acquisition happened; the answer to an unknown commit too.
SELECT epoch FROM `{table}_shards` WHERE shard = {shard} AND owner = {owner} AND epoch > {epoch}
