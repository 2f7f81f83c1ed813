/* SPDX-License-Identifier: MIT */
#include "outbox/db_conn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/base/utf8.h"
#include "core/mask.h"
#include "outbox/db_api.h"
#include "outbox/db_error.h"
#include "outbox/db_stmt.h"
#include "outbox/schema.h"
#include "outbox/server.h"

#define WHAT "opening a database connection"

bool db_init(struct err *err) { return db_api_init(err); }

void db_place(const struct database_config *config, char *out, size_t cap) {
  if (config->socket)
    snprintf(out, cap, "%s", config->socket);
  else
    snprintf(out, cap, "%s:%lld", config->host, (long long)config->port);
}

/* What one statement may give, in bytes: while it is not known yet whether this is our database at all, and then: a
 * batch of 4096 rows with the largest headers fits several times, and a row with a payload as large as a packet beside
 * it. */
static const uint64_t LOGIN_MAX = 1024 * 1024, ANSWER_BEFORE = 1024 * 1024, ANSWER_MAX = 1024 * 1024 * 1024;

/* MariaDB turns long lists of ids into a temporary table that it sorts; index seeks are what we want. Only MariaDB
 * reads comments that begin with M!, only MySQL those that begin with !80000. Lock waits are short, because the unit is
 * redone anyway; metadata locks too, else an ALTER TABLE by an operator would make us wait for a day (the default), and
 * all others behind us.
 *
 * A client that is frozen, or cut off, in the middle of a transaction must not keep its locks: the server ends a
 * session that is silent inside a transaction, or does not take its answer, after seconds (well below engine.lease).
 * MySQL knows only a limit for all idle sessions, so there sessions connect again after a quiet time (session.c).
 *
 * Whoever may INSERT may write what the table's CHECKs refuse and a strict sql_mode too (MariaDB: SET SESSION
 * check_constraint_checks = 0). A daemon must be able to end such a row, so its own sessions pass what is there
 * already; operators' sessions do not. None has NO_ZERO_DATE and NO_ZERO_IN_DATE, with which expressions take such a
 * time for NULL: what commands show would be another time than the one that is written.
 *
 * MySQL keeps what it says of tables for a day, if it may. What the client says of its character set is ignored by a
 * server with skip-character-set-client-handshake, and changed by init_connect.
 *
 * A session can begin inside a transaction: init_connect may start one, and a proxy may hand over a connection that was
 * used. Nothing would be seen but its snapshot, and nothing committed. completion_type may not be set in there yet.
 *
 * The other variables are set because a server may have other defaults, each of which would break a statement. */
static const char setup[] =
    "ROLLBACK AND NO CHAIN NO RELEASE;\n"
    "SET SESSION character_set_client = utf8mb4, character_set_results = utf8mb4, "
    "collation_connection = utf8mb4_general_ci, time_zone = '+00:00', autocommit = 1, innodb_lock_wait_timeout = 1, "
    "lock_wait_timeout = 5, "
    "sql_mode = '" DB_SQL_MODE "', "
    "sql_select_limit = 18446744073709551615, sql_safe_updates = 0, sql_big_selects = 1, completion_type = 0, "
    "group_concat_max_len = 65536"
    "/*M!100303 , in_predicate_conversion_threshold = 0, idle_transaction_timeout = 2 *//*!80000 , "
    "information_schema_stats_expiry = 0 */";
/* Operators' sessions may be idle while somebody thinks about an answer, and keep the server's limit on statements. A
 * poll that such a limit interrupts finds no task, and would be interrupted again. */
static const char setup_daemon[] = ", lock_wait_timeout = 1, net_read_timeout = 3, net_write_timeout = 3"
                                   "/*!80000 , wait_timeout = 3, max_execution_time = 0 */"
                                   "/*M! , check_constraint_checks = 0, max_statement_time = 0 */";
/* A migration that is interrupted changes nothing, and would be interrupted again. */
static const char setup_migrate[] = "/*!80000 , max_execution_time = 0 *//*M! , max_statement_time = 0 */";
static const char setup_check[] =
    ";\nSET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE;\n"
    "SHOW SESSION VARIABLES WHERE Variable_name IN ('time_zone', 'character_set_client', "
    "'character_set_results', 'character_set_connection', 'transaction_isolation', 'tx_isolation', 'sql_mode', "
    "'max_allowed_packet', 'read_only', 'innodb_read_only', 'wait_timeout', 'wsrep_on', 'hostname', 'port', "
    "'server_uuid', 'server_uid', 'wsrep_cluster_name', 'group_replication_group_name', 'alter_algorithm', "
    "'sql_if_exists')";

static bool is_off(const char *value) { return strcasecmp(value, "OFF") == 0 || strcmp(value, "0") == 0; }

/* What names a server, and the cluster that it is a node of. */
struct server_names {
  char host[64], port[8], uid[64], wsrep_cluster[64], group[64];
};

static void note_name(struct server_names *names, const char *name, const char *value) {
  if (strcmp(name, "hostname") == 0)
    snprintf(names->host, sizeof names->host, "%s", value);
  else if (strcmp(name, "port") == 0)
    snprintf(names->port, sizeof names->port, "%s", value);
  else if (strcmp(name, "server_uuid") == 0 || strcmp(name, "server_uid") == 0)
    snprintf(names->uid, sizeof names->uid, "%s", value);
  else if (strcmp(name, "wsrep_cluster_name") == 0)
    snprintf(names->wsrep_cluster, sizeof names->wsrep_cluster, "%s", value);
  else if (strcmp(name, "group_replication_group_name") == 0)
    snprintf(names->group, sizeof names->group, "%s", value);
}

/* A balancer may give each connection another node of a cluster, and all of them hold what one has committed. */
static void name_server(struct db_conn *conn, const struct server_names *names) {
  if (conn->is_cluster)
    snprintf(conn->server, sizeof conn->server, "cluster %s", names->wsrep_cluster);
  else if (*names->group)
    snprintf(conn->server, sizeof conn->server, "group %s", names->group);
  else
    snprintf(conn->server, sizeof conn->server, "%s:%s%s%s", names->host, names->port, *names->uid ? " uid " : "",
             names->uid);
}

/* One variable as the session has it now; false with err when it is not what setup asked for. */
static bool check_variable(struct db_conn *conn, enum db_role role, const char *name, const char *value,
                           struct err *err) {
  if (strcmp(name, "max_allowed_packet") == 0)
    conn->max_packet = strtoull(value, NULL, 10);
  if (strcmp(name, "wait_timeout") == 0)
    conn->idle_limit_us = strtoll(value, NULL, 10) * 1000000;
  if (strcmp(name, "wsrep_on") == 0)
    conn->is_cluster = !is_off(value);
  bool wrong =
      (strcmp(name, "time_zone") == 0 && strcmp(value, "+00:00") != 0) ||
      (strncmp(name, "character_set_", 14) == 0 && strcmp(value, "utf8mb4") != 0) ||
      (strstr(name, "_isolation") && strcmp(value, "READ-COMMITTED") != 0) ||
      (strcmp(name, "sql_mode") == 0 && (!strstr(value, "STRICT_ALL_TABLES") || strstr(value, "NO_BACKSLASH_ESCAPES")));
  if (wrong)
    return err_set(err, DB_E_SESSION, WHAT ": %s is '%s' after we set it; %s", name, value,
                   db_error_cure(DB_E_SESSION));
  if (role == DB_DAEMON && strstr(name, "read_only") && !is_off(value))
    return err_set(err, DB_E_READ_ONLY, WHAT ": the server has %s = %s; %s", name, value,
                   db_error_cure(DB_E_READ_ONLY));
  return true;
}

/* Variables that not every server has, and that change what statements mean: ALTERs too, which housekeeping runs. */
static bool set_back(struct db_conn *conn, bool algorithm, bool if_exists, struct err *err) {
  return (!algorithm || db_run(conn, "SET SESSION alter_algorithm = 'DEFAULT'", WHAT, err)) &&
         (!if_exists || db_run(conn, "SET SESSION sql_if_exists = 0", WHAT, err));
}

/* A setting may be lost in a proxy, and a read-only server lets a user with SUPER write: both are looked at. */
static bool set_up_session(struct db_conn *conn, enum db_role role, struct err *err) {
  struct text script = {0};
  text_puts(&script, setup);
  text_puts(&script, role == DB_DAEMON ? setup_daemon : role == DB_MIGRATE ? setup_migrate : "");
  text_puts(&script, setup_check);
  enum { ROLLED_BACK, SET, ISOLATION, VARIABLES, RESULTS };
  struct db_result results[RESULTS];
  bool ok = db_script(conn, &script, WHAT, results, RESULTS, err);
  text_free(&script);
  if (!ok)
    return false;
  bool seen_zone = false, seen_isolation = false, algorithm = false, if_exists = false;
  struct server_names names = {0};
  struct db_row row;
  while (ok && db_next(&results[VARIABLES], &row, 2)) {
    if (!row.fields[0] || !row.fields[1])
      continue;
    seen_zone = seen_zone || strcmp(row.fields[0], "time_zone") == 0;
    seen_isolation = seen_isolation || strstr(row.fields[0], "_isolation");
    algorithm = algorithm || (strcmp(row.fields[0], "alter_algorithm") == 0 && strcmp(row.fields[1], "DEFAULT") != 0);
    if_exists = if_exists || (strcmp(row.fields[0], "sql_if_exists") == 0 && !is_off(row.fields[1]));
    note_name(&names, row.fields[0], row.fields[1]);
    ok = check_variable(conn, role, row.fields[0], row.fields[1], err);
  }
  db_results_free(results, RESULTS);
  name_server(conn, &names);
  if (ok && !(seen_zone && seen_isolation && conn->max_packet))
    ok = db_unexpected(err, WHAT);
  return ok && set_back(conn, algorithm, if_exists, err);
}

static bool connect_now(struct db_conn *conn, enum db_role role, struct err *err) {
  const struct database_config *config = conn->config;
  bool third_user = role == DB_MIGRATE && config->migrate_user;
  const char *user = third_user ? config->migrate_user : config->user;
  const char *password = third_user ? config->migrate_password : config->password;
  /* FOUND_ROWS: an UPDATE counts the rows it matched, also those that had the values already. */
  unsigned long flags = CLIENT_MULTI_STATEMENTS | CLIENT_FOUND_ROWS;
  if (mysql_real_connect(conn->mysql, config->socket ? NULL : config->host, user, password, config->name,
                         (unsigned)config->port, config->socket, flags))
    return true;
  char place[256], what[512];
  db_place(config, place, sizeof place);
  snprintf(what, sizeof what, "database %s, user %s", place, user ? user : "");
  int code = (int)mysql_errno(conn->mysql);
  const char *cure = third_user ? db_error_cure_migrating(code) : db_error_cure(code);
  return db_failed(conn->mysql, config, what, code, cure, err);
}

/* A password that is also a name is no secret, and the text is of little use without the name. */
static void hide(struct mask *mask, const struct database_config *config, const char *password) {
  const char *const names[] = {config->user, config->migrate_user, config->name, config->table};
  for (size_t i = 0; password && i < ARRAY_LEN(names); i++)
    if (names[i] && strcmp(password, names[i]) == 0)
      return;
  if (password)
    mask_add_secret(mask, password);
}

bool db_failed(void *mysql, const struct database_config *config, const char *what, int code, const char *cure,
               struct err *err) {
  char said[MYSQL_ERRMSG_SIZE];
  struct mask mask;
  mask_begin(&mask);
  hide(&mask, config, config->password);
  hide(&mask, config, config->migrate_password);
  /* Connector/C formats this text without the name that belongs into it. */
  snprintf(said, sizeof said, "%s",
           code == DB_METHOD ? "the server asks for a login method that is not permitted here" : mysql_error(mysql));
  mask_hide(&mask, said);
  utf8_make_printable(said, "");
  err_set(err, code, "%s: %s (error %d)%s%s", what, said, code, *cure ? "; " : "", cure);
  err->denied = db_error_is_right(code) || db_error_is_login(code);
  err->refused = !err->denied && db_error_is_refusal(code);
  return false;
}

/* Without, nothing could end what waits on it: no limit, and no stop of the daemon. */
static bool is_watched(const struct db_conn *conn, struct err *err) {
  return db_watch_has_socket(&conn->watch) ||
         err_set(err, DB_E_FILES, "connecting to the database: no file is left; %s", db_error_cure(DB_E_FILES));
}

/* What the server needs from the first byte on until we know that it is our database, within limits for the whole. */
static bool log_in(struct db_conn *conn, enum db_role role, struct err *err) {
  const struct database_config *config = conn->config;
  const char *limit = "connect_timeout (for connecting and for logging in, each)";
  db_watch_login(&conn->watch, 2 * config->connect_timeout_ms);
  bool connected = connect_now(conn, role, err), ok = connected && db_api_verify(conn->mysql, config, err);
  if (ok) {
    limit = "read_timeout (for what sets a session up, together)";
    db_watch_socket(db_api_socket(conn->mysql));
    db_watch_login_again(&conn->watch, config->read_timeout_ms);
    ok = is_watched(conn, err) && set_up_session(conn, role, err) && server_wait_for_cluster(conn, err) &&
         (role == DB_MIGRATE || schema_check(conn, err));
  }
  bool late = db_watch_login_end(&conn->watch), too_much = !connected && conn->received.exceeded;
  if (!late && !too_much)
    return ok;
  char place[256];
  db_place(config, place, sizeof place);
  if (too_much)
    return err_set(err, DB_E_LOGIN, "database %s: the server says more than %llu KiB and lets nobody in; %s", place,
                   (unsigned long long)(LOGIN_MAX >> 10), db_error_cure(DB_E_LOGIN));
  return err_set(err, DB_E_LOGIN, "database %s: the login did not end within database.%s; %s", place, limit,
                 db_error_cure(DB_E_LOGIN));
}

bool db_open(const struct database_config *config, enum db_role role, const char *purpose, struct db_conn **out,
             struct err *err) {
  db_api_thread();
  struct db_conn *conn = calloc(1, sizeof *conn);
  *out = NULL;
  if (!conn || !(conn->mysql = mysql_init(NULL))) {
    free(conn);
    return err_set(err, DB_E_NO_MEMORY, WHAT ": out of memory");
  }
  conn->config = config;
  conn->role = role;
  db_watch_create(&conn->watch);
  conn->max_answer = ANSWER_BEFORE;
  conn->received.left = LOGIN_MAX;
  db_api_count(conn->mysql, &conn->received);
  if (!db_api_prepare(conn->mysql, config, role == DB_MIGRATE, purpose, err) || !log_in(conn, role, err)) {
    db_close(&conn);
    return false;
  }
  conn->limit_ms = config->read_timeout_ms;
  conn->max_answer = ANSWER_MAX + (conn->max_packet < ANSWER_MAX ? conn->max_packet : ANSWER_MAX);
  *out = conn;
  return true;
}

uint64_t db_thread(const struct db_conn *conn) { return mysql_thread_id(conn->mysql); }

void db_close(struct db_conn **conn) {
  if (!*conn)
    return;
  db_watch_limit(&(*conn)->watch, (*conn)->config->read_timeout_ms, false); /* TLS ends in words, too */
  mysql_close((*conn)->mysql);
  db_watch_destroy(&(*conn)->watch);
  free(*conn);
  *conn = NULL;
}
