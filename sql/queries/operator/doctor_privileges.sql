-- Rights of the user on these tables, as far as they were given to it directly.
SELECT DISTINCT PRIVILEGE_TYPE, 'server' FROM information_schema.USER_PRIVILEGES WHERE GRANTEE = {grantee}
UNION SELECT DISTINCT PRIVILEGE_TYPE, 'schema' FROM information_schema.SCHEMA_PRIVILEGES
  WHERE GRANTEE = {grantee} AND DATABASE() LIKE TABLE_SCHEMA
UNION SELECT DISTINCT PRIVILEGE_TYPE, 'table' FROM information_schema.TABLE_PRIVILEGES
  WHERE GRANTEE = {grantee} AND TABLE_SCHEMA = DATABASE() AND TABLE_NAME = {history}
