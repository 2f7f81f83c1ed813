-- A command has ended that had announced itself.
DELETE FROM `{table}_instances` WHERE id = {id} AND kind = 'application'
