-- A result that fits nothing, with as much of it as people need. Of one place that many are enough.
INSERT INTO `{table}_quarantine` (source, origin, reason, sha256, length, body)
SELECT {source}, {origin}, {reason}, UNHEX(SHA2(b.body, 256)), OCTET_LENGTH(b.body), LEFT(b.body, 4096)
FROM (SELECT _binary {body} AS body) b
WHERE (SELECT COUNT(*) FROM (SELECT 1 FROM `{table}_quarantine` WHERE source = {source} AND origin = {origin}
                             LIMIT 200) kept) < 200
ON DUPLICATE KEY UPDATE seen = seen + 1
