-- The users of a database `shop`. Before or after `duebox migrate`; grants.sql gives all but the first their rights.
-- Change names, hosts and passwords, and leave out the users that you do not need.

-- `duebox migrate` (database.migrate_user).
CREATE USER IF NOT EXISTS 'duebox_migrate'@'%' IDENTIFIED BY 'migrate-password';
GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, DROP, INDEX ON `shop`.* TO 'duebox_migrate'@'%';

-- The daemon.
CREATE USER IF NOT EXISTS 'duebox'@'%' IDENTIFIED BY 'duebox-password';

-- Applications, one user for each of the three roles in grants.sql.
CREATE USER IF NOT EXISTS 'app'@'%' IDENTIFIED BY 'app-password';
CREATE USER IF NOT EXISTS 'app_orm'@'%' IDENTIFIED BY 'app-password';
CREATE USER IF NOT EXISTS 'app_cancel'@'%' IDENTIFIED BY 'app-password';

-- Operators who write SQL by hand. The duebox command needs no such user; it connects as the daemon's.
CREATE USER IF NOT EXISTS 'duebox_operator'@'%' IDENTIFIED BY 'operator-password';
