/* SPDX-License-Identifier: MIT
 *
 * outbox/operator_doctor.c - what an experienced operator would look at: the server's settings, the user's rights, the
 * state of the tables. It reads, and tries rights with statements that match no row; it changes nothing.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "outbox/db_api.h"
#include "outbox/db_error.h"
#include "outbox/operator_impl.h"
#include "outbox/rights.h"
#include "outbox/server.h"
#include "query.h"

enum { VARIABLES_MAX = 16, VALUE_MAX = 256 };

struct variable {
  char name[64], value[VALUE_MAX];
};

struct doctor {
  struct outbox_operator *op;
  const struct doctor_facts *facts;
  finding_fn *say;
  void *ctx;
  struct variable variables[VARIABLES_MAX];
  size_t variable_count;
};

static void say(const struct doctor *doctor, enum finding level, const char *check, const char *cure, const char *fmt,
                ...) PRINTF(5, 6);
static void say(const struct doctor *doctor, enum finding level, const char *check, const char *cure, const char *fmt,
                ...) {
  char text[1024];
  va_list args;
  va_start(args, fmt);
  vsnprintf(text, sizeof text, fmt, args);
  va_end(args);
  doctor->say(doctor->ctx, level, check, text, level == FINDING_OK ? "" : cure);
}

/* Runs a query that gives at most one row. *found false: no row. False: err. */
static bool one_row(const struct doctor *doctor, const char *statement, const struct sql_arg *args, unsigned columns,
                    struct db_result *result, struct db_row *row, bool *found, struct err *err) {
  if (!op_query(doctor->op, statement, args, "looking at the database", result, err))
    return false;
  *found = db_next(result, row, columns);
  return db_is_sound(doctor->op->conn, "looking at the database", err);
}

/* An error that only means "this user may not see that"; others end the examination. */
static bool may_not_see(const struct err *err) { return db_error_class(err->code) == DB_REFUSED; }

/* --- settings --- */

static bool read_variables(struct doctor *doctor, struct err *err) {
  struct db_result result;
  struct db_row row;
  if (!op_query(doctor->op, opsql_doctor_variables, NO_ARGS, "reading the server's settings", &result, err))
    return false;
  while (doctor->variable_count < VARIABLES_MAX && db_next(&result, &row, 2)) {
    struct variable *v = &doctor->variables[doctor->variable_count++];
    snprintf(v->name, sizeof v->name, "%s", row.fields[0] ? row.fields[0] : "");
    snprintf(v->value, sizeof v->value, "%s", row.fields[1] ? row.fields[1] : "");
  }
  db_results_free(&result, 1);
  return true;
}

/* The value of a setting, "" where this server has none of that name. */
static const char *variable(const struct doctor *doctor, const char *name) {
  for (size_t i = 0; i < doctor->variable_count; i++)
    if (strcmp(doctor->variables[i].name, name) == 0)
      return doctor->variables[i].value;
  return "";
}

static bool is_on(const char *value) { return strcasecmp(value, "ON") == 0 || strcmp(value, "1") == 0; }

/* "10.11.19-MariaDB" is 101119. */
static unsigned version_number(const char *text) {
  unsigned number = 0;
  for (int part = 0; part < 3; part++) {
    char *end;
    unsigned long n = strtoul(text, &end, 10);
    number = number * 100 + (n < 100 ? (unsigned)n : 99);
    text = *end == '.' ? end + 1 : "";
  }
  return number;
}

/* What the tests run on: docs/ENGINES.md. */
static bool was_run(bool maria, unsigned version) {
  static const struct {
    bool maria;
    unsigned series;
  } run[] = {{true, 1011}, {true, 1108}, {false, 907}};
  for (size_t i = 0; i < ARRAY_LEN(run); i++)
    if (run[i].maria == maria && run[i].series == version / 100)
      return true;
  return false;
}

static bool check_server(struct doctor *doctor, struct err *err) {
  enum { FIRST_MARIADB = 101000, FIRST_MYSQL = 80019 };
  const char *version = variable(doctor, "version"), *comment = variable(doctor, "version_comment");
  bool maria = strcasestr(version, "mariadb") || strcasestr(comment, "mariadb");
  bool other = strcasestr(version, "tidb") || strcasestr(version, "vitess");
  unsigned number = version_number(version);
  bool old = number < (maria ? FIRST_MARIADB : FIRST_MYSQL);
  say(doctor, old ? FINDING_FAIL : FINDING_OK, "server", "use MariaDB 10.10 or later, or MySQL 8.0.19 or later",
      "%s %s", maria ? "MariaDB" : "MySQL", version);
  if (other || !was_run(maria, number))
    say(doctor, FINDING_WARN, "server kind", "test your load on it first; docs/ENGINES.md says what was run",
        "duebox is not tested on %s", version);
  return true;
}

static bool check_session(struct doctor *doctor, struct err *err) {
  /* Opening the connection has verified what our own sessions use; here is what other writers get. */
  const char *mode = variable(doctor, "sql_mode");
  bool strict = strstr(mode, "STRICT_TRANS_TABLES") || strstr(mode, "STRICT_ALL_TABLES");
  say(doctor, FINDING_OK, "session", "", "READ COMMITTED, time zone +00:00, strict sql_mode");
  say(doctor, strict ? FINDING_OK : FINDING_WARN, "sql_mode",
      "SET GLOBAL sql_mode with STRICT_TRANS_TABLES, or let applications set it",
      strict ? "the server's default is strict"
             : "the server's default is not strict: applications may insert values "
               "that are cut without an error");
  return true;
}

static bool check_cluster(struct doctor *doctor, struct err *err) {
  const char *single = variable(doctor, "group_replication_single_primary_mode");
  if (is_on(variable(doctor, "wsrep_on")))
    say(doctor, FINDING_OK, "cluster", "",
        "a Galera node: sessions wait for what other nodes committed (wsrep_sync_wait = 7); a daemon that loses its "
        "lease "
        "is fenced only where all daemons use one node; see docs/ENGINES.md");
  if (*single && variable(doctor, "group_replication_group_name")[0])
    say(doctor, is_on(single) ? FINDING_OK : FINDING_WARN, "cluster",
        "let one member take writes: SELECT group_replication_switch_to_single_primary_mode()",
        is_on(single) ? "a member of a group with one primary; see docs/ENGINES.md"
                      : "a member of a group with several primaries, on which duebox is not tested");
  return true;
}

static bool check_read_only(struct doctor *doctor, struct err *err) {
  static const char *const names[] = {"read_only", "super_read_only", "innodb_read_only"};
  for (size_t i = 0; i < ARRAY_LEN(names); i++)
    if (is_on(variable(doctor, names[i]))) {
      say(doctor, FINDING_FAIL, "read_only", "connect to the primary, or SET GLOBAL read_only = OFF",
          "the server has %s = ON: the daemon waits until it may write", names[i]);
      return true;
    }
  say(doctor, FINDING_OK, "read_only", "", "the server takes writes");
  return true;
}

static bool check_binlog(struct doctor *doctor, struct err *err) {
  const char *format = variable(doctor, "binlog_format");
  if (!is_on(variable(doctor, "log_bin")))
    say(doctor, FINDING_OK, "binlog", "", "off");
  else if (strcasecmp(format, "STATEMENT") == 0)
    say(doctor, FINDING_FAIL, "binlog", "set binlog_format = ROW in the server's configuration and restart it",
        "binlog_format is STATEMENT, which refuses writes at READ COMMITTED");
  else
    say(doctor, FINDING_OK, "binlog", "", "binlog_format %s", format);
  return true;
}

static bool check_durability(struct doctor *doctor, struct err *err) {
  const char *flush = variable(doctor, "innodb_flush_log_at_trx_commit"), *sync = variable(doctor, "sync_binlog");
  bool log = strcmp(flush, "1") == 0, binlog = !is_on(variable(doctor, "log_bin")) || strcmp(sync, "1") == 0;
  say(doctor, log && binlog ? FINDING_OK : FINDING_WARN, "durability",
      "set innodb_flush_log_at_trx_commit = 1 and sync_binlog = 1",
      "innodb_flush_log_at_trx_commit = %s, sync_binlog = %s%s", flush, sync,
      log && binlog ? "" : ": a commit can be lost with the machine's power");
  return true;
}

static bool check_packet(struct doctor *doctor, struct err *err) {
  enum { ROW_OVERHEAD = 64 * 1024 };
  int64_t packet = strtoll(variable(doctor, "max_allowed_packet"), NULL, 10), payload = doctor->facts->max_payload;
  /* A statement that carries a payload may escape every byte of it. */
  enum finding level = packet < payload + ROW_OVERHEAD       ? FINDING_FAIL
                       : packet < 2 * payload + ROW_OVERHEAD ? FINDING_WARN
                                                             : FINDING_OK;
  say(doctor, level, "max_allowed_packet",
      "raise max_allowed_packet on the server to twice engine.max_payload and more",
      "%" PRId64 " bytes for payloads of up to %" PRId64, packet, payload);
  return true;
}

static bool check_clock(struct doctor *doctor, struct err *err) {
  enum { WARN_US = 1000000, SLOW_US = 200000 };
  struct db_result result;
  struct db_row row;
  bool found;
  int64_t before = doctor->facts->wall_clock(), theirs = 0;
  if (!one_row(doctor, "SELECT UTC_TIMESTAMP(6)", NO_ARGS, 1, &result, &row, &found, err))
    return false;
  int64_t after = doctor->facts->wall_clock();
  bool ok = found && db_time(&row, 0, &theirs);
  db_results_free(&result, 1);
  if (!ok)
    return db_unexpected(err, "asking for the time");
  int64_t offset = theirs - (before + (after - before) / 2);
  say(doctor, llabs(offset) > WARN_US ? FINDING_WARN : FINDING_OK, "clock",
      "let both machines follow NTP; due times are by the database's clock, signatures by this machine's",
      "the database is %.3f ms %s of this machine", (double)llabs(offset) / 1000, offset < 0 ? "behind" : "ahead");
  say(doctor, after - before > SLOW_US ? FINDING_WARN : FINDING_OK, "round trip",
      "run the daemon nearer to the database", "%.3f ms", (double)(after - before) / 1000);
  return true;
}

/* --- rights --- */

static bool check_rights(struct doctor *doctor, struct err *err) {
  struct rights rights;
  struct text missing = {0};
  bool ok = rights_of(query_all, &rights);
  for (const char *const *statement = opsql_all; ok && *statement; statement++)
    ok = rights_add(&rights, *statement);
  if (!ok)
    return err_set(err, DB_E_NO_MEMORY, "more tables than RIGHTS_TABLES");
  ok = rights_try(doctor->op->conn, &rights, &missing, err);
  if (ok)
    say(doctor, missing.len ? FINDING_FAIL : FINDING_OK, "rights", missing.len ? missing.data : "",
        missing.len ? "%s lacks rights that duebox's statements need" : "%s may do all that duebox's statements do",
        doctor->op->conn->config->user);
  text_free(&missing);
  return ok;
}

/* Whether new rows can be noticed as they commit. */
static void check_wake(const struct doctor *doctor, const char *user, bool granted) {
  bool wanted = doctor->facts->wake == WAKE_BINLOG, on = is_on(variable(doctor, "log_bin"));
  char cure[512];
  struct err cannot;
  snprintf(cure, sizeof cure, "GRANT %s ON *.* TO %s", server_binlog_rights(doctor->op->conn), user);
  if (doctor->facts->wake == WAKE_POLL)
    say(doctor, FINDING_OK, "wake-up", "", "by polling, as configured");
  else if (!db_api_can_tail(doctor->op->conn->mysql, &cannot))
    say(doctor, wanted ? FINDING_WARN : FINDING_OK, "wake-up", "set database.wake: poll", "by polling: %s",
        cannot.text);
  else if (!on)
    say(doctor, wanted ? FINDING_WARN : FINDING_OK, "wake-up",
        "set log_bin and binlog_format = ROW in the server's configuration and restart it",
        "by polling: the server writes no binlog");
  else if (!granted)
    say(doctor, FINDING_WARN, "wake-up", cure, "by polling: %s may not read the binlog", user);
  else
    say(doctor, FINDING_OK, "wake-up", "", "by the server's binlog");
}

/* The rights that were given directly: DDL on partitioned tables is needed, rights on the whole server are not. */
static bool check_privileges(struct doctor *doctor, struct err *err) {
  char grantee[256] = "", history[80];
  struct db_result result;
  struct db_row row;
  bool found, alter = false, drop = false, super = false, replica = false, status = false;
  if (!one_row(doctor, opsql_doctor_user, NO_ARGS, 1, &result, &row, &found, err))
    return false;
  bool ok = found && db_copy(&row, 0, grantee, sizeof grantee);
  db_results_free(&result, 1);
  if (!ok)
    return db_unexpected(err, "asking who we are");
  snprintf(history, sizeof history, "%s_history", doctor->op->table);
  if (!op_query(doctor->op, opsql_doctor_privileges, ARGS(STRING("grantee", grantee), STRING("history", history)),
                "reading rights", &result, err))
    return false;
  while (db_next(&result, &row, 2)) {
    const char *right = row.fields[0] ? row.fields[0] : "", *level = row.fields[1] ? row.fields[1] : "";
    alter |= strcmp(right, "ALTER") == 0;
    drop |= strcmp(right, "DROP") == 0;
    replica |= strcmp(right, "REPLICATION SLAVE") == 0 && strcmp(level, "server") == 0;
    status |= strcmp(right, "REPLICATION CLIENT") == 0 && strcmp(level, "server") == 0;
    super |= strcmp(level, "server") == 0 && strcmp(right, "USAGE") != 0 && strcmp(right, "PROCESS") != 0 &&
             strncmp(right, "REPLICATION", 11) != 0 && strncmp(right, "BINLOG", 6) != 0;
  }
  db_results_free(&result, 1);
  say(doctor, alter && drop ? FINDING_OK : FINDING_WARN, "partitions right",
      "GRANT ALTER, CREATE, DROP, INSERT on the history and attempts tables to the daemon's user",
      alter && drop ? "ALTER and DROP on %s"
                    : "ALTER and DROP on %s are not given directly; without them old history is "
                      "not dropped",
      history);
  say(doctor, super ? FINDING_WARN : FINDING_OK, "least privilege",
      "give the daemon a user with rights on its own "
      "tables only",
      super ? "%s has rights on the whole server" : "%s has no rights on the whole server", grantee);
  check_wake(doctor, grantee, replica && (status || !server_is_mysql(doctor->op->conn)));
  return true;
}

/* --- the state of the server and of the tables --- */

static bool check_history_length(struct doctor *doctor, struct err *err) {
  enum { LONG = 1000000 };
  struct db_result result;
  struct db_row row;
  bool found;
  uint64_t length;
  if (!one_row(doctor, opsql_doctor_history_length, NO_ARGS, 1, &result, &row, &found, err)) {
    if (!may_not_see(err))
      return false;
    say(doctor, FINDING_OK, "purge", "", "history list length is not visible to this user (needs PROCESS)");
    return true;
  }
  if (found && db_u64(&row, 0, UINT64_MAX, &length))
    say(doctor, length > LONG ? FINDING_WARN : FINDING_OK, "purge",
        "end old transactions and replicas' snapshots: deleted rows stay in the way until they are purged",
        "history list length %" PRIu64, length);
  db_results_free(&result, 1);
  return true;
}

static bool check_transactions(struct doctor *doctor, struct err *err) {
  enum { OLD_S = 300 };
  struct db_result result;
  struct db_row row;
  bool found;
  uint64_t thread, age;
  if (!one_row(doctor, opsql_doctor_transactions, NO_ARGS, 2, &result, &row, &found, err))
    return may_not_see(err);
  if (found && db_u64(&row, 0, UINT64_MAX, &thread) && db_u64(&row, 1, INT32_MAX, &age) && age > OLD_S)
    say(doctor, FINDING_WARN, "transactions", "find out whose it is, and end it: KILL <connection>",
        "connection %" PRIu64 " has had a transaction open for %" PRIu64 " s", thread, age);
  else
    say(doctor, FINDING_OK, "transactions", "", "none is open for long");
  db_results_free(&result, 1);
  return true;
}

static bool check_partitions(struct doctor *doctor, struct err *err) {
  char history[80], attempts[80];
  snprintf(history, sizeof history, "%s_history", doctor->op->table);
  snprintf(attempts, sizeof attempts, "%s_attempts", doctor->op->table);
  struct db_result result;
  struct db_row row;
  if (!op_query(doctor->op, opsql_doctor_partitions, ARGS(STRING("history", history), STRING("attempts", attempts)),
                "looking at partitions", &result, err))
    return false;
  while (db_next(&result, &row, 3)) {
    uint64_t ahead = 0;
    bool some = row.fields[1] && db_u64(&row, 2, 1, &ahead);
    say(doctor, some && ahead ? FINDING_OK : FINDING_WARN, "partitions",
        "a running daemon makes them; look into its log for DUEBOX-HOUSEKEEPING-TROUBLE",
        some ? "%s has partitions up to %s" : "%s has no partition but the last%s", row.fields[0] ? row.fields[0] : "",
        some ? row.fields[1] : "");
  }
  db_results_free(&result, 1);
  return true;
}

static bool check_shards(struct doctor *doctor, struct err *err) {
  struct db_result result;
  struct db_row row;
  bool found;
  uint64_t all, held, lapsed;
  if (!one_row(doctor, opsql_doctor_shards, NO_ARGS, 3, &result, &row, &found, err))
    return false;
  bool ok = found && db_u64(&row, 0, 255, &all) && db_u64(&row, 1, 255, &held) && db_u64(&row, 2, 255, &lapsed);
  db_results_free(&result, 1);
  if (!ok)
    return db_unexpected(err, "looking at the shards");
  say(doctor, held == all ? FINDING_OK : FINDING_WARN, "shards", "start a daemon: duebox run",
      "%" PRIu64 " of %" PRIu64 " are held by daemons%s", held, all,
      lapsed ? "; some were left without being given back" : "");
  return true;
}

static bool check_routes(struct doctor *doctor, struct err *err) {
  struct db_result result;
  struct db_row row;
  bool found;
  uint64_t sets;
  if (!one_row(doctor, opsql_doctor_routes, NO_ARGS, 2, &result, &row, &found, err))
    return false;
  bool ok = found && db_u64(&row, 0, UINT32_MAX, &sets);
  if (ok && sets > 1)
    say(doctor, FINDING_WARN, "routes", "give all daemons of one outbox the same routes; see docs/OPERATIONS.md",
        "%s have %" PRIu64 " different sets of routes: each holds tasks of the routes that it lacks",
        row.fields[1] ? row.fields[1] : "?", sets);
  else if (ok)
    say(doctor, FINDING_OK, "routes", "", "all living daemons have the same");
  db_results_free(&result, 1);
  return ok || db_unexpected(err, "looking at the daemons' routes");
}

static bool check_backlog(struct doctor *doctor, struct err *err) {
  enum { LATE_US = 60 * 1000000 };
  struct db_result result;
  struct db_row row;
  bool found;
  if (!one_row(doctor, opsql_doctor_overdue, NO_ARGS, 1, &result, &row, &found, err))
    return false;
  int64_t late = found && row.fields[0] ? strtoll(row.fields[0], NULL, 10) : 0;
  db_results_free(&result, 1);
  say(doctor, late > LATE_US ? FINDING_WARN : FINDING_OK, "overdue",
      "look at `duebox route list` for the route, and at the daemon's log",
      late > LATE_US ? "the oldest due task waits for %.0f s" : "no task waits for long (%.1f s)",
      late > 0 ? (double)late / 1e6 : 0.0);
  return true;
}

enum { COUNTED_MAX = 10000 };

/* "3", or "at least 10000". */
static bool count_due(struct doctor *doctor, const char *route, const struct text *shards, enum task_state state,
                      char out[32], struct err *err) {
  struct db_result result;
  struct db_row row;
  uint64_t count;
  if (!op_query(doctor->op, opsql_doctor_due_count,
                ARGS(STRING("route", route), STRING("state", task_state_text(state)), RAW("shards", *shards),
                     UNSIGNED("cap", COUNTED_MAX)),
                "counting due tasks", &result, err))
    return false;
  bool ok = db_next(&result, &row, 1) && db_u64(&row, 0, UINT64_MAX, &count);
  db_results_free(&result, 1);
  if (ok)
    snprintf(out, 32, "%s%" PRIu64, count == COUNTED_MAX ? "at least " : "", count);
  return ok || db_unexpected(err, "counting due tasks");
}

/* What a daemon would send as soon as it runs: after a restore, or on hold, people want to know before it does. The
 * last check: where it takes longer than database.read_timeout, the others have been made. */
static bool check_due(struct doctor *doctor, struct err *err) {
  enum { ROUTES_SAID = 50 };
  struct db_result result;
  struct db_row row;
  struct text shards = {0};
  bool any = false, ok;
  ok = op_query(doctor->op, opsql_doctor_due, ARGS(UNSIGNED("cap", ROUTES_SAID)), "counting due tasks", &result, err);
  bool asked = ok;
  filter_shards(&shards, doctor->op->shards);
  while (ok && db_next(&result, &row, 2)) {
    char due[32], claimed[32], awaiting[32];
    const char *route = row.fields[0] ? row.fields[0] : "";
    ok = count_due(doctor, route, &shards, TASK_SCHEDULED, due, err) &&
         count_due(doctor, route, &shards, TASK_CLAIMED, claimed, err) &&
         count_due(doctor, route, &shards, TASK_AWAITING, awaiting, err);
    if (ok)
      say(doctor, FINDING_OK, "to be sent", "", "%s: %s due%s%.19s, %s claimed, %s awaiting a result", route, due,
          row.fields[1] ? ", the oldest since " : "", row.fields[1] ? row.fields[1] : "", claimed, awaiting);
    any = true;
  }
  if (asked)
    db_results_free(&result, 1);
  text_free(&shards);
  if (!ok)
    say(doctor, FINDING_WARN, "to be sent", "look at `duebox route list`", "they could not be counted: %s", err->text);
  else if (!any)
    say(doctor, FINDING_OK, "to be sent", "", "nothing is due, claimed or awaiting a result");
  return true;
}

static bool check_held(struct doctor *doctor, struct err *err) {
  enum { ROUTES_SAID = 20, COUNTED = 10000 };
  struct db_result result;
  struct db_row row;
  if (!op_query(doctor->op, opsql_doctor_held, ARGS(UNSIGNED("cap", ROUTES_SAID), UNSIGNED("most", COUNTED)),
                "counting held tasks", &result, err))
    return false;
  uint64_t count = 0, all = 0;
  for (; db_next(&result, &row, 2) && row.fields[0] && db_u64(&row, 1, UINT64_MAX, &count); all += count)
    say(doctor, FINDING_WARN, "held tasks",
        "define the route, or correct the name that the application writes; then they go on by themselves",
        "%s: %s%" PRIu64 " wait because no daemon has this route", row.fields[0], count == COUNTED ? "at least " : "",
        count);
  db_results_free(&result, 1);
  if (all == 0)
    say(doctor, FINDING_OK, "held tasks", "", "none: every task's route is known");
  return true;
}

/* What got past the table's CHECKs and no daemon reads, and ids that come to their end. */
static bool check_misfits(struct doctor *doctor, struct err *err) {
  enum { ROWS_SAID = 20 };
  struct db_result result;
  struct db_row row;
  if (!op_query(doctor->op, opsql_doctor_misfits, ARGS(UNSIGNED("cap", ROWS_SAID), STRING("name", doctor->op->table)),
                "looking at rows", &result, err))
    return false;
  bool any = false;
  for (; db_next(&result, &row, 3); any = true)
    say(doctor, FINDING_WARN, row.fields[0] ? row.fields[0] : "", row.fields[2] ? row.fields[2] : "", "%s",
        row.fields[1] ? row.fields[1] : "a row cannot be read");
  db_results_free(&result, 1);
  if (!any)
    say(doctor, FINDING_OK, "unreadable tasks", "", "none: daemons can read every task");
  return true;
}

static bool check_dead(struct doctor *doctor, struct err *err) {
  enum { LATEST = 10000, ROUTES_SAID = 20 };
  struct db_result result;
  struct db_row row;
  if (!op_query(doctor->op, opsql_doctor_dead, ARGS(UNSIGNED("cap", LATEST)), "looking at dead tasks", &result, err))
    return false;
  uint64_t count = 0, routes = 0;
  for (; db_next(&result, &row, 4) && row.fields[0] && db_u64(&row, 1, UINT64_MAX, &count); routes++) {
    char cure[256];
    const char *route = row.fields[0], *class = row.fields[3];
    snprintf(cure, sizeof cure, "duebox dead list --route %s; when it is mended: duebox dead retry --route %s", route,
             route);
    if (routes < ROUTES_SAID)
      say(doctor, FINDING_WARN, "dead tasks", cure, "%s: %s%" PRIu64 " ended dead within a day, the last at %.19s%s%s",
          route, count == LATEST ? "at least " : "", count, row.fields[2] ? row.fields[2] : "?", class ? ": " : "",
          class ? class : "");
  }
  db_results_free(&result, 1);
  if (routes > ROUTES_SAID)
    say(doctor, FINDING_WARN, "dead tasks", "duebox route list", "%" PRIu64 " more routes had some within a day",
        routes - ROUTES_SAID);
  if (routes == 0)
    say(doctor, FINDING_OK, "dead tasks", "", "none within a day");
  return true;
}

/* A driver that writes local times shifts due_at by the offset of the zone, without an error. One behind UTC makes
 * tasks due before they exist; one ahead is only seen when it is the zone of this machine. */
static bool check_due_zone(struct doctor *doctor, struct err *err) {
  struct db_result result;
  struct db_row row;
  struct tm local;
  bool found;
  time_t now = (time_t)(doctor->facts->wall_clock() / 1000000);
  int64_t offset = localtime_r(&now, &local) && local.tm_gmtoff > 0 ? local.tm_gmtoff : INT32_MAX;
  uint64_t all, before, shifted;
  if (!one_row(doctor, opsql_doctor_zone, ARGS(SIGNED("offset", offset)), 4, &result, &row, &found, err))
    return false;
  bool ok = found && db_u64(&row, 0, 2000, &all) && db_u64(&row, 1, 2000, &before) && db_u64(&row, 2, 2000, &shifted);
  const char *route = ok && row.fields[3] ? row.fields[3] : "?";
  const char *cure = "let applications write delay_ms, or due_at in UTC: docs/CLIENTS.md shows how for each driver";
  if (ok && before)
    say(doctor, FINDING_WARN, "due times", cure,
        "%" PRIu64 " of %" PRIu64 " due_at of the last hour were past at the insert (%s): local times?", before, all,
        route);
  else if (ok && shifted)
    say(doctor, FINDING_WARN, "due times", cure,
        "%" PRIu64 " of %" PRIu64
        " due_at of the last hour are %.4g h ahead, as this machine's zone is (%s): local times?",
        shifted, all, (double)offset / 3600, route);
  else if (ok)
    say(doctor, FINDING_OK, "due times", "", "no sign of local times in due_at");
  db_results_free(&result, 1);
  return ok || db_unexpected(err, "looking at due times");
}

static bool check_quarantine(struct doctor *doctor, struct err *err) {
  struct db_result result;
  struct db_row row;
  bool found;
  uint64_t count = 0;
  if (!one_row(doctor, opsql_doctor_quarantine, NO_ARGS, 2, &result, &row, &found, err))
    return false;
  bool ok = found && db_u64(&row, 0, UINT64_MAX, &count);
  if (ok && count)
    say(doctor, FINDING_WARN, "quarantine", "read them: duebox quarantine list",
        "%" PRIu64 " result records fitted no task, the last at %s", count, row.fields[1] ? row.fields[1] : "?");
  else if (ok)
    say(doctor, FINDING_OK, "quarantine", "", "empty");
  db_results_free(&result, 1);
  return ok || db_unexpected(err, "looking at the quarantine");
}

enum store_status op_doctor(void *self, const struct doctor_facts *facts, finding_fn *say_fn, void *ctx,
                            struct err *err) {
  static bool (*const checks[])(struct doctor *, struct err *) = {
      check_server,     check_session,    check_cluster,  check_read_only,  check_binlog,         check_durability,
      check_packet,     check_clock,      check_rights,   check_privileges, check_history_length, check_transactions,
      check_partitions, check_shards,     check_routes,   check_backlog,    check_held,           check_misfits,
      check_dead,       check_quarantine, check_due_zone, check_due};
  struct doctor doctor = {.op = self, .facts = facts, .say = say_fn, .ctx = ctx};
  bool ok = read_variables(&doctor, err);
  for (size_t i = 0; ok && i < ARRAY_LEN(checks); i++)
    ok = checks[i](&doctor, err);
  return ok ? STORE_OK : op_status(err);
}
