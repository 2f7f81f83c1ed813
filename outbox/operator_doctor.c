/* SPDX-License-Identifier: MIT
 *
 * outbox/operator_doctor.c - what an experienced operator would look at: the server's settings, the user's rights, and
 * in operator_doctor_tables.c the state of the tables. It reads, and tries rights with statements that match no row; it
 * changes nothing.
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
#include "outbox/grants.h"
#include "outbox/operator_doctor.h"
#include "outbox/rights.h"
#include "outbox/server.h"
#include "query.h"

void doctor_say(const struct doctor *doctor, enum finding level, const char *check, const char *cure, const char *fmt,
                ...) {
  char text[1024];
  va_list args;
  va_start(args, fmt);
  vsnprintf(text, sizeof text, fmt, args);
  va_end(args);
  doctor->say(doctor->ctx, level, check, text, level == FINDING_OK ? "" : cure);
}

bool doctor_row(const struct doctor *doctor, const char *statement, const struct sql_arg *args, unsigned columns,
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
  doctor_say(doctor, old ? FINDING_FAIL : FINDING_OK, "server", "use MariaDB 10.10 or later, or MySQL 8.0.19 or later",
             "%s %s", maria ? "MariaDB" : "MySQL", version);
  if (other || !was_run(maria, number))
    doctor_say(doctor, FINDING_WARN, "server kind", "test your load on it first; docs/ENGINES.md says what was run",
               "duebox is not tested on %s", version);
  return true;
}

static bool check_session(struct doctor *doctor, struct err *err) {
  /* Opening the connection has verified what our own sessions use; here is what other writers get. */
  const char *mode = variable(doctor, "sql_mode");
  bool strict = strstr(mode, "STRICT_TRANS_TABLES") || strstr(mode, "STRICT_ALL_TABLES");
  doctor_say(doctor, FINDING_OK, "session", "", "READ COMMITTED, time zone +00:00, strict sql_mode");
  doctor_say(doctor, strict ? FINDING_OK : FINDING_WARN, "sql_mode",
             "SET GLOBAL sql_mode with STRICT_TRANS_TABLES, or let applications set it",
             strict ? "the server's default is strict"
                    : "the server's default is not strict: applications may insert values "
                      "that are cut without an error");
  return true;
}

static bool check_cluster(struct doctor *doctor, struct err *err) {
  const char *single = variable(doctor, "group_replication_single_primary_mode");
  if (is_on(variable(doctor, "wsrep_on")))
    doctor_say(
        doctor, FINDING_OK, "cluster", "",
        "a Galera node: sessions wait for what other nodes committed (wsrep_sync_wait = 7). Let all daemons, and all "
        "who "
        "change tasks, use one node: else no daemon that loses its lease is fenced, and tasks may be lost that two "
        "nodes change; see docs/ENGINES.md");
  if (*single && variable(doctor, "group_replication_group_name")[0])
    doctor_say(doctor, is_on(single) ? FINDING_OK : FINDING_WARN, "cluster",
               "let one member take writes: SELECT group_replication_switch_to_single_primary_mode()",
               is_on(single) ? "a member of a group with one primary; see docs/ENGINES.md"
                             : "a member of a group with several primaries, on which duebox is not tested");
  return true;
}

static bool check_read_only(struct doctor *doctor, struct err *err) {
  static const char *const names[] = {"read_only", "super_read_only", "innodb_read_only"};
  for (size_t i = 0; i < ARRAY_LEN(names); i++)
    if (is_on(variable(doctor, names[i]))) {
      doctor_say(doctor, FINDING_FAIL, "read_only", "connect to the primary, or SET GLOBAL read_only = OFF",
                 "the server has %s = ON: the daemon waits until it may write", names[i]);
      return true;
    }
  doctor_say(doctor, FINDING_OK, "read_only", "", "the server takes writes");
  return true;
}

static bool check_binlog(struct doctor *doctor, struct err *err) {
  const char *format = variable(doctor, "binlog_format");
  if (!is_on(variable(doctor, "log_bin")))
    doctor_say(doctor, FINDING_OK, "binlog", "", "off");
  else if (strcasecmp(format, "STATEMENT") == 0)
    doctor_say(doctor, FINDING_FAIL, "binlog", "set binlog_format = ROW in the server's configuration and restart it",
               "binlog_format is STATEMENT, which refuses writes at READ COMMITTED");
  else
    doctor_say(doctor, FINDING_OK, "binlog", "", "binlog_format %s", format);
  return true;
}

static bool check_durability(struct doctor *doctor, struct err *err) {
  const char *flush = variable(doctor, "innodb_flush_log_at_trx_commit"), *sync = variable(doctor, "sync_binlog");
  bool log = strcmp(flush, "1") == 0, binlog = !is_on(variable(doctor, "log_bin")) || strcmp(sync, "1") == 0;
  doctor_say(doctor, log && binlog ? FINDING_OK : FINDING_WARN, "durability",
             "set innodb_flush_log_at_trx_commit = 1 and sync_binlog = 1",
             "innodb_flush_log_at_trx_commit = %s, sync_binlog = %s%s", flush, sync,
             log && binlog ? "" : ": a commit can be lost with the machine's power");
  return true;
}

/* What is sent to the server: the daemon's statements, and payloads, of which an application's INSERT may escape every
 * byte. What is read is bounded by no packet. */
static bool check_packet(struct doctor *doctor, struct err *err) {
  enum { LEAST = 1024 * 1024, BESIDE = 64 * 1024 };
  int64_t packet = strtoll(variable(doctor, "max_allowed_packet"), NULL, 10), payload = doctor->facts->max_payload;
  if (packet < LEAST)
    doctor_say(doctor, FINDING_FAIL, "max_allowed_packet", "raise max_allowed_packet on the server to 1 MiB or more",
               "%" PRId64 " bytes: statements of the daemon may be larger", packet);
  else if (packet < 2 * payload + BESIDE)
    doctor_say(doctor, FINDING_WARN, "max_allowed_packet",
               "raise max_allowed_packet on the server to twice engine.max_payload and more, or lower "
               "engine.max_payload to what applications need",
               "%" PRId64 " bytes: the server may refuse an INSERT of a payload of up to %" PRId64, packet, payload);
  else
    doctor_say(doctor, FINDING_OK, "max_allowed_packet", "", "%" PRId64 " bytes for payloads of up to %" PRId64, packet,
               payload);
  return true;
}

static bool check_clock(struct doctor *doctor, struct err *err) {
  enum { WARN_US = 1000000, SLOW_US = 200000 };
  struct db_result result;
  struct db_row row;
  bool found;
  int64_t before = doctor->facts->wall_clock(), theirs = 0;
  if (!doctor_row(doctor, "SELECT UTC_TIMESTAMP(6)", NO_ARGS, 1, &result, &row, &found, err))
    return false;
  int64_t after = doctor->facts->wall_clock();
  bool ok = found && db_time(&row, 0, &theirs);
  db_results_free(&result, 1);
  if (!ok)
    return db_unexpected(err, "asking for the time");
  int64_t offset = theirs - (before + (after - before) / 2);
  doctor_say(doctor, llabs(offset) > WARN_US ? FINDING_WARN : FINDING_OK, "clock",
             "let both machines follow NTP; due times are by the database's clock, signatures by this machine's",
             "the database is %.3f ms %s of this machine", (double)llabs(offset) / 1000,
             offset < 0 ? "behind" : "ahead");
  doctor_say(doctor, after - before > SLOW_US ? FINDING_WARN : FINDING_OK, "round trip",
             "run the daemon nearer to the database", "%.3f ms", (double)(after - before) / 1000);
  return true;
}

/* --- rights --- */

static bool check_rights(struct doctor *doctor, struct err *err) {
  struct rights rights;
  struct text missing = {0}, lost = {0};
  bool ok = rights_of(query_all, &rights);
  for (const char *const *statement = opsql_all; ok && *statement; statement++)
    ok = rights_add(&rights, *statement);
  if (!ok)
    return err_set(err, DB_E_NO_MEMORY, "more tables than RIGHTS_TABLES");
  ok = rights_try(doctor->op->conn, &rights, &missing, &lost, err);
  doctor->tables_lost = lost.len > 0;
  if (ok)
    doctor_say(doctor, lost.len ? FINDING_FAIL : FINDING_OK, "tables",
               "restore them from a backup where there is one; `duebox migrate` makes them again, empty",
               lost.len ? "not there, though a migration made them: %s" : "all are there%s", lost.len ? lost.data : "");
  if (ok)
    doctor_say(doctor, missing.len ? FINDING_FAIL : FINDING_OK, "rights", missing.len ? missing.data : "",
               missing.len ? "%s lacks rights that duebox's statements need"
                           : "%s may do all that duebox's statements do",
               doctor->op->conn->config->user);
  text_free(&missing);
  text_free(&lost);
  return ok;
}

/* Whether new rows can be noticed as they commit. */
static void check_wake(const struct doctor *doctor, const char *user, bool granted) {
  bool wanted = doctor->facts->wake == WAKE_BINLOG, on = is_on(variable(doctor, "log_bin"));
  char cure[512];
  struct err cannot;
  snprintf(cure, sizeof cure, "GRANT %s ON *.* TO %s", server_binlog_rights(doctor->op->conn), user);
  if (doctor->facts->wake == WAKE_POLL)
    doctor_say(doctor, FINDING_OK, "wake-up", "", "by polling, as configured");
  else if (!db_api_can_tail(doctor->op->conn->mysql, &cannot))
    doctor_say(doctor, wanted ? FINDING_WARN : FINDING_OK, "wake-up", "set database.wake: poll", "by polling: %s",
               cannot.text);
  else if (!on)
    doctor_say(doctor, wanted ? FINDING_WARN : FINDING_OK, "wake-up",
               "set log_bin and binlog_format = ROW in the server's configuration and restart it",
               "by polling: the server writes no binlog");
  else if (!granted)
    doctor_say(doctor, FINDING_WARN, "wake-up", cure, "by polling: %s may not read the binlog", user);
  else
    doctor_say(doctor, FINDING_OK, "wake-up", "", "by the server's binlog");
}

static bool read_grants(struct doctor *doctor, const char *suffix, struct grants *grants, struct err *err) {
  char table[96];
  struct db_result result;
  struct db_row row;
  snprintf(table, sizeof table, "%s%s", doctor->op->table, suffix);
  *grants = (struct grants){.database = doctor->op->conn->config->name,
                            .table = table,
                            .case_counts = strcmp(variable(doctor, "lower_case_table_names"), "0") == 0};
  if (!op_query(doctor->op, "SHOW GRANTS", NO_ARGS, "reading rights", &result, err))
    return false;
  while (db_next(&result, &row, 1))
    if (row.fields[0])
      grants_add(grants, row.fields[0]);
  grants->table = NULL;
  db_results_free(&result, 1);
  return true;
}

/* "GRANT ALTER, CREATE ON `shop`.`outbox_history` TO 'duebox'@'%'; .." for those that keep house and cannot be tried.
 */
static bool lacks_of_house(struct doctor *doctor, const char *grantee, struct text *lacks, struct err *err) {
  struct rights rights;
  bool ok = rights_of(query_all, &rights) || err_set(err, DB_E_NO_MEMORY, "more tables than RIGHTS_TABLES");
  for (size_t i = 0; ok && i < rights.count; i++) {
    struct grants given = {0};
    const char *suffix = rights.tables[i].suffix, *between = lacks->len ? "; GRANT " : "GRANT ";
    size_t before = lacks->len;
    unsigned needed = rights.tables[i].need & (RIGHT_ALTER | RIGHT_CREATE | RIGHT_DROP);
    ok = !needed || read_grants(doctor, suffix, &given, err);
    for (unsigned r = 0; ok && r < RIGHTS; r++)
      if (needed & ~given.rights & 1U << r) {
        text_puts(lacks, between);
        text_puts(lacks, right_names[r]);
        between = ", ";
      }
    if (lacks->len > before)
      text_expand(lacks, " ON `{name}`.`{table}{suffix}` TO {user}", doctor->op->table,
                  ARGS(WORD("name", doctor->op->conn->config->name), WORD("suffix", suffix), WORD("user", grantee)));
  }
  return ok && (!lacks->failed || err_set(err, DB_E_NO_MEMORY, "out of memory"));
}

/* The rights that the session has: DDL on some tables is needed, rights on the whole server are not. */
static bool check_privileges(struct doctor *doctor, struct err *err) {
  char grantee[256] = "";
  struct db_result result;
  struct db_row row;
  struct text lacks = {0};
  struct grants given;
  bool found;
  if (!doctor_row(doctor, opsql_doctor_user, NO_ARGS, 1, &result, &row, &found, err))
    return false;
  bool ok = found && db_copy(&row, 0, grantee, sizeof grantee);
  db_results_free(&result, 1);
  if (!ok)
    return db_unexpected(err, "asking who we are");
  ok = read_grants(doctor, "", &given, err) && lacks_of_house(doctor, grantee, &lacks, err);
  if (ok)
    doctor_say(doctor, lacks.len ? FINDING_WARN : FINDING_OK, "rights to keep house", lacks.len ? lacks.data : "",
               lacks.len ? "some are missing; without them old history is not dropped, and ids that a client "
                           "drove to their end stay there (DUEBOX-HOUSEKEEPING-TROUBLE)"
                         : "to change partitions and the counter of ids: all are given");
  text_free(&lacks);
  if (!ok)
    return false;
  doctor_say(doctor, given.super ? FINDING_WARN : FINDING_OK, "least privilege",
             "give the daemon a user with rights on its own "
             "tables only",
             given.super ? "%s has rights on the whole server"
                         : "%s has no right on the whole server, but to replicate and to see processes",
             grantee);
  check_wake(doctor, grantee, given.replica && (given.status || !server_is_mysql(doctor->op->conn)));
  return true;
}

/* --- the state of the server --- */

static bool check_history_length(struct doctor *doctor, struct err *err) {
  enum { LONG = 1000000 };
  struct db_result result;
  struct db_row row;
  bool found;
  uint64_t length;
  if (!doctor_row(doctor, opsql_doctor_history_length, NO_ARGS, 1, &result, &row, &found, err)) {
    if (!may_not_see(err))
      return false;
    doctor_say(doctor, FINDING_OK, "purge", "", "history list length is not visible to this user (needs PROCESS)");
    return true;
  }
  if (found && db_u64(&row, 0, UINT64_MAX, &length))
    doctor_say(doctor, length > LONG ? FINDING_WARN : FINDING_OK, "purge",
               "end old transactions and replicas' snapshots: deleted rows stay in the way until they are purged",
               "history list length %" PRIu64, length);
  db_results_free(&result, 1);
  return true;
}

static bool check_transactions(struct doctor *doctor, struct err *err) {
  enum { OLD_S = 60 }; /* longer than any of ours; tasks wait for its locks, and the purge for its snapshot */
  struct db_result result;
  struct db_row row;
  bool found;
  uint64_t thread, age;
  if (!doctor_row(doctor, opsql_doctor_transactions, NO_ARGS, 2, &result, &row, &found, err))
    return may_not_see(err);
  if (found && db_u64(&row, 0, UINT64_MAX, &thread) && db_u64(&row, 1, INT32_MAX, &age) && age > OLD_S)
    doctor_say(doctor, FINDING_WARN, "transactions",
               "find out whose it is, and end it: KILL <connection>. Connection 0 is none: that one was prepared with "
               "XA; XA RECOVER lists it, XA ROLLBACK ends it",
               "connection %" PRIu64 " has had a transaction open for %" PRIu64 " s", thread, age);
  else
    doctor_say(doctor, FINDING_OK, "transactions", "", "none has been open for a minute");
  db_results_free(&result, 1);
  return true;
}

bool doctor_run(struct doctor *doctor, doctor_check *const *checks, size_t count, struct err *err) {
  for (size_t i = 0; i < count; i++) {
    if (checks[i](doctor, err) || (doctor->tables_lost && err->code == DOCTOR_NO_TABLE))
      continue;
    if (db_error_class(err->code) != DB_REFUSED)
      return false;
    doctor_say(doctor, FINDING_FAIL, "database", db_error_cure(err->code), "%s", err->text);
  }
  return true;
}

enum store_status op_doctor(void *self, const struct doctor_facts *facts, finding_fn *say_fn, void *ctx,
                            struct err *err) {
  static doctor_check *const checks[] = {check_server, check_session,    check_cluster,        check_read_only,
                                         check_binlog, check_durability, check_packet,         check_clock,
                                         check_rights, check_privileges, check_history_length, check_transactions,
                                         doctor_tables};
  struct doctor doctor = {.op = self, .facts = facts, .say = say_fn, .ctx = ctx};
  bool ok = read_variables(&doctor, err) && doctor_run(&doctor, checks, ARRAY_LEN(checks), err);
  return ok ? STORE_OK : op_status(err);
}
