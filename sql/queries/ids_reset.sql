-- The next row's id is the one after the largest that is there. MariaDB does not wait here for transactions that have
-- touched the table: whatever anybody does with it would wait behind this.
ALTER TABLE `{table}` /*M! NOWAIT */ AUTO_INCREMENT = 1, ALGORITHM = INPLACE, LOCK = NONE
