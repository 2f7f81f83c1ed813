-- An instance says that it lives, and which routes it has.
INSERT INTO `{table}_instances` (id, kind, host, url, version, routes, pid, alive_until)
VALUES ({id}, 'daemon', {host}, {url}, {version}, {routes}, {pid}, UTC_TIMESTAMP(6) + INTERVAL {ttl_us} MICROSECOND)
ON DUPLICATE KEY UPDATE seen_at = UTC_TIMESTAMP(6), host = {host}, url = {url}, version = {version}, routes = {routes},
  pid = {pid},
  alive_until = UTC_TIMESTAMP(6) + INTERVAL {ttl_us} MICROSECOND
