-- Of a migration's text.
SELECT SHA2({text}, 256)
