/* SPDX-License-Identifier: MIT */
#include "outbox/db_error.h"

#include <stddef.h>

#include "core/base/attr.h"

#define RUN_MIGRATE "run `duebox migrate`"
#define OTHER_TABLE                                                                                                    \
  "the table is not the one this version knows: `duebox migrate` brings it up to date, or says what somebody has "     \
  "changed in it"
#define GRANT "once `duebox migrate` has made the tables, give the daemon's user its rights: sql/examples/grants.sql"
#define KEEP_PASSWORD                                                                                                  \
  "set database.socket, or database.tls: true, or database.server_public_key_file (public_key.pem of the server's "    \
  "data "                                                                                                              \
  "folder): the password is not sent where whoever answers on the port could read it"
#define SYSTEM "look at the server's disks, open files and memory, and into its error log"
#define UNLOCK "the user's account is locked: ALTER USER .. ACCOUNT UNLOCK"
#define CHECK_SERVER "check database.host, port and socket, and that the server runs"

static const struct {
  int code;
  enum db_class cls;
  const char *cure;
} errors[] = {
    /* The transaction, or its statement only (1205, 1317, 1969, 3024), was undone by the server. */
    {1213, DB_CONFLICT, "deadlock; it is redone by itself"},
    {1205, DB_CONFLICT,
     "a session has that lock, of an application or one of duebox's own (its user tells), or holds the table as a "
     "whole; where it lasts, look for it in information_schema.INNODB_TRX and SHOW PROCESSLIST"},
    {3572, DB_CONFLICT, "another transaction holds the row"},
    {1020, DB_CONFLICT, "the row changed since it was read; it is redone by itself"},
    {DB_GUARD, DB_CONFLICT, "rows or leases changed since they were read; it is redone by itself"},
    {1317, DB_CONFLICT, "somebody killed the statement"},
    {1969, DB_CONFLICT, "raise or remove max_statement_time for this database user"},
    {3024, DB_CONFLICT, "raise or remove max_execution_time for this database user"},
    {3101, DB_CONFLICT, "group replication rolled it back; let all daemons write to one node"},
    {1412, DB_CONFLICT, "the table was altered; it is redone by itself"},

    {2006, DB_LOST, CHECK_SERVER},
    {2013, DB_LOST, "the server or the network cut the connection, or database.read_timeout is too short"},
    {2014, DB_LOST, ""},
    {2026, DB_DOWN, "TLS failed: check database.tls_ca, the server's certificate and that the server offers TLS"},
    {2027, DB_LOST, "something between here and the server changes the bytes"},
    {2055, DB_LOST, CHECK_SERVER},
    {1053, DB_LOST, "the server is shutting down"},
    {1236, DB_LOST, "the binlog cannot be read from there; it is followed again from its end"},
    {1927, DB_LOST, "somebody killed the connection"},
    {1152, DB_LOST, ""},
    {1158, DB_LOST, ""},
    {1159, DB_LOST, ""},
    {1160, DB_LOST, ""},
    {1161, DB_LOST, ""},
    {1184, DB_LOST, ""},
    {3169, DB_LOST, "somebody killed the connection"},
    {4031, DB_LOST, "the server closed it as idle; raise wait_timeout"},

    {2002, DB_DOWN, CHECK_SERVER},
    {2003, DB_DOWN, CHECK_SERVER},
    {2005, DB_DOWN, "the host name does not resolve; check database.host"},
    {1040, DB_DOWN, "raise max_connections or close other clients"},
    {1203, DB_DOWN, "raise max_user_connections or close other clients of this user"},
    {1226, DB_DOWN, "the user's resource limits are used up"},
    {1129, DB_DOWN, "run FLUSH HOSTS on the server and look for what fails to connect"},
    {1047, DB_DOWN, "the cluster node is not ready (it has left the primary component)"},
    {3032, DB_DOWN, "let others than its administrators in again: SET GLOBAL offline_mode = OFF"},
    {1135, DB_DOWN, "the server cannot start a thread; check its memory and limits"},
    {1037, DB_DOWN, "the server is out of memory"},
    {1041, DB_DOWN, "the server is out of memory"},
    {1105, DB_DOWN,
     "the server says no more than that: somebody killed the statement, or a proxy between here and the server failed; "
     "look into their logs"},

    {1290, DB_READ_ONLY,
     "where it is read-only, connect to the primary: a fail-over is seen by itself; change the option otherwise"},
    {1792, DB_READ_ONLY, "connect to the primary; a fail-over is seen by itself"},
    {1836, DB_READ_ONLY, "connect to the primary; a fail-over is seen by itself"},
    {3100, DB_READ_ONLY, "connect to the primary; a fail-over is seen by itself"},
    {DB_E_READ_ONLY, DB_READ_ONLY, "connect to the primary, or set read_only = OFF"},

    {3, DB_FULL, "make room on the server's disks"},
    {28, DB_FULL, "make room on the server's disks"},
    {1021, DB_FULL, "make room on the server's disks"},
    {1026, DB_FULL, "make room on the server's disks"},
    {1030, DB_FULL, "make room on the server's disks and look into its error log"},
    {1114, DB_FULL, "make room on the server's disks"},
    {1016, DB_FULL, SYSTEM},
    {1024, DB_FULL, SYSTEM},
    {1180, DB_FULL, SYSTEM},
    {1878, DB_FULL, SYSTEM},
    {1206, DB_FULL, "raise innodb_buffer_pool_size: the lock table is full"},

    {1045, DB_REFUSED, "check database.user and its password"},
    {1698, DB_REFUSED, "check database.user and its password"},
    {4151, DB_REFUSED, UNLOCK}, /* MariaDB */
    {3118, DB_REFUSED, UNLOCK}, /* MySQL */
    {1044, DB_REFUSED, GRANT},
    {1142, DB_REFUSED, GRANT},
    {1143, DB_REFUSED, GRANT},
    {1227, DB_REFUSED, GRANT},
    {1370, DB_REFUSED, GRANT},
    {1820, DB_REFUSED, "the user's password has expired"},
    {1862, DB_REFUSED, "the user's password has expired"},
    {2059, DB_REFUSED,
     "the client library lacks the user's authentication plugin; use mysql_native_password, ed25519 or "
     "caching_sha2_password"},
    {1049, DB_REFUSED, "check database.name, or create the database and " RUN_MIGRATE},
    {1146, DB_REFUSED, RUN_MIGRATE},
    {DB_NO_ROW_ID, DB_REFUSED,
     "a client has driven the counter of row ids to its end: a daemon puts it back within a minute, and says "
     "DUEBOX-ROW-IDS-RESET, or what is in its way"},
    {1054, DB_REFUSED, OTHER_TABLE},
    {1364, DB_REFUSED, OTHER_TABLE},
    {1176, DB_REFUSED, "somebody dropped that index: add it again, as `duebox migrate --show-sql` prints it"},
    {1665, DB_REFUSED, "set binlog_format = ROW in the server's configuration and restart it"},
    {1153, DB_REFUSED, "raise max_allowed_packet on the server"},
    {2020, DB_REFUSED, "raise max_allowed_packet on the server"},
    {DB_E_PACKET, DB_REFUSED, "raise max_allowed_packet on the server"},
    {1526, DB_REFUSED,
     "the table has no partition for it: add one, `ALTER TABLE .. ADD PARTITION (PARTITION p_later VALUES LESS THAN "
     "(MAXVALUE))`"},
    {DB_E_NOT_MIGRATED, DB_REFUSED, RUN_MIGRATE},
    {DB_E_NEWER, DB_REFUSED, "install the newer duebox that migrated it"},
    {DB_E_PLAINTEXT, DB_REFUSED, "set database.tls: true, or database.allow_plaintext: true if the network is trusted"},
    {DB_E_TLS, DB_REFUSED, "let the server offer TLS (ssl_cert, ssl_key) and check database.tls_ca"},
    {DB_E_PASSWORD, DB_REFUSED, KEEP_PASSWORD},
    {2061, DB_REFUSED, KEEP_PASSWORD},
    {DB_E_SOCKET, DB_REFUSED,
     "whoever answers there gets the password and is believed, so the socket must be in a folder of its server that "
     "nobody else may write into, as /run/mysqld is"},
    {DB_METHOD, DB_REFUSED,
     "it would reveal the password; create the user with caching_sha2_password, ed25519 or mysql_native_password, and "
     "make sure that it is your server that answers there"},
    {DB_E_RIGHTS, DB_REFUSED, GRANT},
    {DB_E_SESSION, DB_REFUSED, "something between here and the server drops session settings; connect directly"},
    {DB_E_VALUE, DB_REFUSED,
     "a row has a value that the table does not allow, or a condition of yours computes one: `duebox doctor` names "
     "such "
     "rows"},
    {DB_E_ROW, DB_REFUSED, "the table was altered by hand; compare it with `duebox migrate --show-sql`"},
    {DB_E_BINLOG, DB_REFUSED, "polling finds all tasks meanwhile; set database.wake: poll where that is meant"},
    {5017, DB_REFUSED, /* CR_ERR_BINLOG_UNCOMPRESS of Connector/C */
     "a row that log_bin_compress packed is larger than 16 MiB; set database.wake: poll where such rows are frequent"},
    {DB_E_EVENT, DB_LOST,
     "it is followed again from behind that; set database.wake: poll where such rows are frequent"},
    {DB_E_PROTOCOL, DB_LOST, "something between here and the server changes the answers; connect directly"},
    {DB_E_LOGIN, DB_DOWN,
     "make sure that it is your database that answers there; if it is, and slow, raise that limit"},
    {DB_E_LATE, DB_LOST,
     "look at the server, the network and any proxy between; if they are that slow, raise that limit"},
    {DB_E_FILES, DB_DOWN, "raise the limit of open files (LimitNOFILE, ulimit -n)"},
    {DB_E_NOT_TAKEN, DB_REFUSED, "a trigger of yours leaves rows out, or no partition takes them"},
    {DB_E_NO_MEMORY, DB_DOWN, "this machine is out of memory; lower engine.batch or the routes' concurrency"},
};

/* `duebox migrate` logs in as a user of its own and needs other rights. */
#define CHECK_MIGRATOR "check database.migrate_user and its password"
#define GRANT_MIGRATOR                                                                                                 \
  "grant what sql/examples/users.sql gives to the user of `duebox migrate`, and name it in database.migrate_user"
#define COMPARE "a table is not as the migrations before left it: compare it with `duebox migrate --show-sql`"

static const struct {
  int code;
  const char *cure;
} migrating[] = {
    {1045, CHECK_MIGRATOR}, {1698, CHECK_MIGRATOR}, {1044, GRANT_MIGRATOR}, {1142, GRANT_MIGRATOR},
    {1143, GRANT_MIGRATOR}, {1227, GRANT_MIGRATOR}, {1370, GRANT_MIGRATOR}, {1146, COMPARE},
    {1054, COMPARE},        {1364, COMPARE},
};

static int find(int code) {
  for (size_t i = 0; i < ARRAY_LEN(errors); i++)
    if (errors[i].code == code)
      return (int)i;
  return -1;
}

/* What the server's operating system said to it, not about what the statement writes: a file that cannot be made, no
 * more open files, no memory. That passes, and what is written then is to be whole. */
static bool is_of_system(int code) {
  enum { SYSTEM_END = 1000 };
  return code > 0 && code < SYSTEM_END;
}

enum db_class db_error_class(int code) {
  int at = find(code);
  return at >= 0 ? errors[at].cls : is_of_system(code) ? DB_FULL : DB_REFUSED;
}

bool db_error_ends_script(int code) {
  enum { CLIENT_FIRST = 2000, CLIENT_END = 3000 };
  enum db_class cls = db_error_class(code);
  return cls != DB_LOST && cls != DB_DOWN && code < DB_E_FIRST && !(code >= CLIENT_FIRST && code < CLIENT_END);
}

static bool is_one_of(int code, const int *codes, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (codes[i] == code)
      return true;
  return false;
}

bool db_error_is_value(int code) {
  static const int codes[] = {1264, 1265, 1292, 1366, 1406, 1441, 3819, 4025, DB_E_VALUE};
  return is_one_of(code, codes, ARRAY_LEN(codes));
}

bool db_error_is_check(int code) {
  static const int codes[] = {3819, 4025};
  return is_one_of(code, codes, ARRAY_LEN(codes));
}

bool db_error_is_right(int code) {
  static const int codes[] = {1044, 1142, 1143, 1227, 1370};
  return is_one_of(code, codes, ARRAY_LEN(codes));
}

bool db_error_is_login(int code) {
  static const int codes[] = {1045, 1698, 1820, 1862, 3118, 4151};
  return is_one_of(code, codes, ARRAY_LEN(codes));
}

bool db_error_is_denied(int code) {
  static const int missing[] = {1049, 1054, 1146, 1932};
  return db_error_is_right(code) || is_one_of(code, missing, ARRAY_LEN(missing));
}

bool db_error_is_refusal(int code) { return db_error_class(code) == DB_REFUSED && !db_error_is_denied(code); }

const char *db_error_cure(int code) {
  int at = find(code);
  return at >= 0 ? errors[at].cure : is_of_system(code) ? SYSTEM : "";
}

const char *db_error_cure_migrating(int code) {
  for (size_t i = 0; i < ARRAY_LEN(migrating); i++)
    if (migrating[i].code == code)
      return migrating[i].cure;
  return db_error_cure(code);
}

enum store_status db_class_status(enum db_class cls) {
  switch (cls) {
  case DB_CONFLICT:
    return STORE_BUSY;
  case DB_LOST:
  case DB_DOWN:
  case DB_READ_ONLY:
  case DB_FULL:
    return STORE_DOWN;
  case DB_REFUSED:
  case DB_CLASSES:
    break;
  }
  return STORE_REFUSED;
}
