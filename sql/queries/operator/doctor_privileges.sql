-- Rights of the user on a table, its database and the server, as far as they were given to it directly.
SELECT DISTINCT PRIVILEGE_TYPE, 'server' FROM information_schema.USER_PRIVILEGES WHERE GRANTEE = {grantee}
UNION SELECT DISTINCT PRIVILEGE_TYPE, 'schema' FROM information_schema.SCHEMA_PRIVILEGES
  WHERE GRANTEE = {grantee} AND DATABASE() LIKE TABLE_SCHEMA
  AND (NOT {case_counts} OR CAST(DATABASE() AS BINARY) LIKE CAST(TABLE_SCHEMA AS BINARY))
UNION SELECT DISTINCT PRIVILEGE_TYPE, 'table' FROM information_schema.TABLE_PRIVILEGES
  WHERE GRANTEE = {grantee} AND TABLE_SCHEMA = DATABASE() AND TABLE_NAME = {name}
  AND (NOT {case_counts} OR CAST(TABLE_SCHEMA AS BINARY) = DATABASE() AND CAST(TABLE_NAME AS BINARY) = {name})
