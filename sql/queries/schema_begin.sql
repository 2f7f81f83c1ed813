-- A migration begins; a second migrator finds it begun.
INSERT IGNORE INTO `{table}_schema` (version, name, checksum) VALUES ({version}, {name}, {checksum})
