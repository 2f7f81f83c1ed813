-- The next row's id is the one after the largest that is there.
ALTER TABLE `{table}` AUTO_INCREMENT = 1, ALGORITHM = INPLACE, LOCK = NONE
