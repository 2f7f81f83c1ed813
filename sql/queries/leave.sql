-- An instance ends.
DELETE FROM `{table}_instances` WHERE id = {id}
