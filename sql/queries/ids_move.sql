-- Gives rows with far ids the ids after the largest ordinary one, in their order. Not those that may be in flight or
-- whose result is awaited: their consumers know the id, and the attempt ends by itself. Not heads of order keys, which are known by their ids: they end by their own attempts.
UPDATE `{table}` AS o
JOIN (SELECT id, ROW_NUMBER() OVER (ORDER BY id) AS n FROM `{table}` AS t
      WHERE id >= {far} AND (state IN ('held', 'blocked') OR state = 'scheduled' AND next_at > UTC_TIMESTAMP(6) + INTERVAL 10 SECOND)
        AND NOT EXISTS (SELECT 1 FROM `{table}_heads` AS h WHERE h.head_id = t.id)
      ORDER BY id LIMIT 1000) AS chosen ON chosen.id = o.id
CROSS JOIN (SELECT COALESCE(MAX(id), 0) AS last_id FROM `{table}` WHERE id < {far}) AS ordinary
SET o.id = ordinary.last_id + chosen.n, o.changed_at = o.changed_at
