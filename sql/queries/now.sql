-- The clock that all due times are measured by.
SELECT UTC_TIMESTAMP(6)
