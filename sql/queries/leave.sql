-- An instance ends, and with it its lease of its name.
DELETE FROM `{table}_instances` WHERE id = {id} OR id = {name} AND version = {id}
