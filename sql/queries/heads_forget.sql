-- Heads whose task is over.
DELETE h FROM `{table}_heads` h LEFT JOIN `{table}` o ON o.id = h.head_id 
WHERE o.id IS NULL OR o.route <> h.route OR o.order_key <> h.order_key
