-- Whether we hold our name, and since when.
SELECT version = {id}, started_at FROM `{table}_instances` WHERE id = {name}
