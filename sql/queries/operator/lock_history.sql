-- What is about to come back to life, as it is now. The columns up to keep_until become the before image of the audit
-- row. Whether its id is for no row any more: it is far, or a living task has it, or another one that is to come back.
SELECT id, message_id, state, shard, attempt, failures, due_at, finished_at, error_class, keep_until,
  id >= {far} OR EXISTS (SELECT 1 FROM `{table}` AS o WHERE o.id = h.id)
    OR EXISTS (SELECT 1 FROM `{table}_history` AS e
      WHERE e.id = h.id AND e.keep_until < h.keep_until AND (e.id, e.keep_until) IN ({keys})) AS other_id
FROM `{table}_history` AS h WHERE id IN ({ids}) AND (id, keep_until) IN ({keys}) ORDER BY id FOR UPDATE {wait}
