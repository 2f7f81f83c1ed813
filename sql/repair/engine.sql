-- Gives a table back its transactions, whichever engine somebody has converted it to. This copies it.
ALTER TABLE `{name}` ENGINE = InnoDB;
