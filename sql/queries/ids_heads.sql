-- Heads of order keys are known by the ids of their tasks.
UPDATE JSON_TABLE({ids}, '$[*]' COLUMNS (n FOR ORDINALITY, id BIGINT UNSIGNED PATH '$')) AS far
STRAIGHT_JOIN `{table}_heads` AS h FORCE INDEX (PRIMARY) ON h.head_id = far.id
SET h.head_id = {last} + far.n
