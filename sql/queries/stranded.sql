-- The next heads of order keys, and of each whether it is stranded: it waits for a host that lives nowhere, and nobody
-- else tries it. While its route is paused nobody would go on if it were over.
SELECT h.head_id, (o.state = 'scheduled' AND o.shard = 63 AND NOT {host_lives}
  AND NOT EXISTS (SELECT 1 FROM `{table}_routes` r WHERE r.route = o.route AND r.paused)) IS TRUE
FROM (SELECT head_id, route, order_key, message_id, failures FROM `{table}_heads` FORCE INDEX (PRIMARY)
  WHERE head_id > {after} ORDER BY head_id LIMIT {limit}) h
LEFT JOIN `{table}` o FORCE INDEX (PRIMARY) ON {head_lives}
ORDER BY h.head_id
