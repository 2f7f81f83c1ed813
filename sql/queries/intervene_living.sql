-- Those of them that there are, whoever holds them.
SELECT id FROM `{table}` FORCE INDEX (PRIMARY) WHERE id IN ({ids}) AND shard = {shard}
