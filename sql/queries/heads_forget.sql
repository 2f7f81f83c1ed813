-- Heads whose task is over.
DELETE h FROM `{table}_heads` h LEFT JOIN `{table}` o ON o.id = h.head_id 
WHERE o.id IS NULL OR h.message_id NOT IN ('', o.message_id) OR h.message_id <> '' AND h.failures <> o.failures OR o.route <> h.route
  OR o.order_key <> h.order_key
