-- Result records that were kept for inspection, the newest first.
SELECT id, received_at, source, origin, reason, seen, length, HEX(sha256) AS sha256, LEFT(body, {cap}) AS body
FROM `{table}_quarantine` WHERE {id} = 0 OR id = {id} ORDER BY id DESC LIMIT {limit}
