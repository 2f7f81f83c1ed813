-- The first rows with far ids that may have others now and that nobody else holds; they are ours until the commit.
SELECT id FROM `{table}` AS t FORCE INDEX (PRIMARY) WHERE id >= {far} AND {which} ORDER BY id LIMIT {limit} FOR UPDATE SKIP LOCKED
