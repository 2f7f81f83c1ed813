-- How many of them there are, whoever holds them.
SELECT COUNT(*) FROM `{table}` FORCE INDEX (PRIMARY) WHERE id IN ({ids}) AND shard = {shard}
