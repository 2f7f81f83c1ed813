/* SPDX-License-Identifier: MIT
 *
 * outbox/operator_doctor_tables.c - what the doctor sees in the tables. It changes nothing.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "core/base/shell.h"
#include "outbox/db_error.h"
#include "outbox/operator_doctor.h"
#include "outbox/row.h"
#include "outbox/schema.h"
#include "outbox/server.h"
#include "outbox/table_checks.h"

static bool check_partitions(struct doctor *doctor, struct err *err) {
  char history[80], attempts[80];
  snprintf(history, sizeof history, "%s_history", doctor->op->table);
  snprintf(attempts, sizeof attempts, "%s_attempts", doctor->op->table);
  struct db_result result;
  struct db_row row;
  if (!op_query(doctor->op, opsql_doctor_partitions, ARGS(STRING("history", history), STRING("attempts", attempts)),
                "looking at partitions", &result, err))
    return false;
  while (db_next(&result, &row, 4)) {
    uint64_t ahead = 0, last = 0;
    bool some = row.fields[1] && db_u64(&row, 2, 1, &ahead);
    if (row.fields[0] && row.fields[3] && db_u64(&row, 3, 1, &last) && !last) {
      doctor_say(doctor, FINDING_WARN, "partitions",
                 "add the last one: ALTER TABLE .. ADD PARTITION (PARTITION p_later VALUES LESS THAN (MAXVALUE))",
                 "%s takes nothing %s%s: the server refuses it (DUEBOX-SETTLE-REDUCED, DUEBOX-SETTLE-REFUSED)",
                 row.fields[0], some ? "beyond " : "that its partitions do not name", some ? row.fields[1] : "");
      continue;
    }
    doctor_say(doctor, some && ahead ? FINDING_OK : FINDING_WARN, "partitions",
               "a running daemon makes them; look into its log for DUEBOX-HOUSEKEEPING-TROUBLE",
               some ? "%s has partitions up to %s" : "%s has no partition but the last%s",
               row.fields[0] ? row.fields[0] : "", some ? row.fields[1] : "");
  }
  db_results_free(&result, 1);
  return true;
}

/* "3, 5, and that of bound tasks" */
static void name_shards(uint64_t shards, char *out, size_t cap) {
  struct text text = {0};
  text_shard_set(&text, shards & ~shard_bit(SHARD_BOUND));
  bool bound = shards & shard_bit(SHARD_BOUND);
  snprintf(out, cap, "%s%s%s", text.len ? text.data : "", text.len && bound ? " and " : "",
           bound ? "63 (tasks bound to a host)" : "");
  text_free(&text);
}

static bool check_shards(struct doctor *doctor, struct err *err) {
  struct db_result result;
  struct db_row row;
  char names[256];
  uint64_t gone = doctor->op->shards, shard, runs, ended, wild, held = 0, lapsed = 0, stuck = 0;
  if (!op_query(doctor->op, opsql_doctor_shards, NO_ARGS, "looking at the shards", &result, err))
    return false;
  bool ok = true;
  while (ok && db_next(&result, &row, 4)) {
    ok = db_u64(&row, 0, STORE_SHARDS_MAX - 1, &shard) && db_u64(&row, 1, 1, &runs) && db_u64(&row, 2, 1, &ended) &&
         db_u64(&row, 3, 1, &wild);
    stuck |= ok && wild ? shard_bit((uint8_t)shard) : 0;
    gone &= ok ? ~shard_bit((uint8_t)shard) : gone;
    held += ok && shard < doctor->op->conn->shards && runs;
    lapsed += ok && ended;
  }
  db_results_free(&result, 1);
  if (!ok)
    return db_unexpected(err, "looking at the shards");
  name_shards(gone, names, sizeof names);
  if (gone)
    doctor_say(
        doctor, FINDING_FAIL, "shards",
        "a running daemon puts the rows back within seconds; its log says why where it cannot (DUEBOX-SHARD-TROUBLE)",
        "the table of shards has no rows for %s: somebody deleted them, and nobody sends their tasks", names);
  name_shards(stuck, names, sizeof names);
  if (stuck)
    doctor_say(doctor, FINDING_FAIL, "shards", "set the column to 0 in these rows of the table of shards",
               "no daemon can take %s: the epoch there is one that no daemon writes, and nobody sends their tasks",
               names);
  doctor_say(doctor, held == doctor->op->conn->shards ? FINDING_OK : FINDING_WARN, "shards",
             "start a daemon: duebox run", "%" PRIu64 " of %u are held by daemons%s", held, doctor->op->conn->shards,
             lapsed ? "; some were left without being given back" : "");
  return true;
}

static bool check_routes(struct doctor *doctor, struct err *err) {
  struct db_result result;
  struct db_row row;
  bool found;
  uint64_t sets;
  if (!doctor_row(doctor, opsql_doctor_routes, NO_ARGS, 2, &result, &row, &found, err))
    return false;
  bool ok = found && db_u64(&row, 0, UINT32_MAX, &sets);
  if (ok && sets > 1)
    doctor_say(doctor, FINDING_WARN, "routes", "give all daemons of one outbox the same routes; see docs/OPERATIONS.md",
               "%s have %" PRIu64 " different sets of routes: each holds tasks of the routes that it lacks",
               row.fields[1] ? row.fields[1] : "?", sets);
  else if (ok)
    doctor_say(doctor, FINDING_OK, "routes", "", "all living daemons have the same");
  db_results_free(&result, 1);
  return ok || db_unexpected(err, "looking at the daemons' routes");
}

static bool check_addresses(struct doctor *doctor, struct err *err) {
  struct db_result result;
  struct db_row row;
  bool found;
  if (!doctor_row(doctor, opsql_doctor_addresses, NO_ARGS, 2, &result, &row, &found, err))
    return false;
  if (found)
    doctor_say(doctor, FINDING_WARN, "addresses",
               "set the admin.url of each daemon to an address that leads to it alone",
               "%s have the address %s, which leads to one of them: tasks of the others are not cancelled from there",
               row.fields[1] ? row.fields[1] : "?", row.fields[0] ? row.fields[0] : "?");
  db_results_free(&result, 1);
  return true;
}

static const char *address(const struct db_row *row, unsigned at) {
  return row->fields[at] && *row->fields[at] ? row->fields[at] : "no address";
}

static bool check_names(struct doctor *doctor, struct err *err) {
  struct db_result result;
  struct db_row row;
  bool found;
  if (!doctor_row(doctor, opsql_doctor_names, NO_ARGS, 5, &result, &row, &found, err))
    return false;
  if (found)
    doctor_say(doctor, FINDING_WARN, "names", "give each daemon an engine.instance of its own, or end one of the two",
               "two daemons have the name %s: process %s at %s, and process %s at %s; one runs what is bound to it, "
               "and the other stands by",
               row.fields[0] ? row.fields[0] : "?", row.fields[1] ? row.fields[1] : "?", address(&row, 2),
               row.fields[3] ? row.fields[3] : "?", address(&row, 4));
  db_results_free(&result, 1);
  return true;
}

/* For how long the oldest due task in that state has waited, in seconds; 0: none has. */
static bool read_overdue(struct doctor *doctor, enum task_state state, double *late_s, struct err *err) {
  struct db_result result;
  struct db_row row;
  bool found;
  if (!doctor_row(doctor, opsql_doctor_overdue, ARGS(STRING("state", task_state_text(state))), 1, &result, &row, &found,
                  err))
    return false;
  int64_t late_us = found && row.fields[0] ? strtoll(row.fields[0], NULL, 10) : 0;
  *late_s = late_us > 0 ? (double)late_us / 1e6 : 0.0;
  db_results_free(&result, 1);
  return true;
}

/* What is blocked is not late by itself: a task before it failed, and is to be tried again. */
static bool check_backlog(struct doctor *doctor, struct err *err) {
  enum { LATE_S = 60, BLOCKED_S = 3600 };
  double late, blocked;
  if (!read_overdue(doctor, TASK_SCHEDULED, &late, err) || !read_overdue(doctor, TASK_BLOCKED, &blocked, err))
    return false;
  doctor_say(doctor, late > LATE_S ? FINDING_WARN : FINDING_OK, "overdue",
             "look at `duebox route list` for the route, and at the daemon's log",
             late > LATE_S ? "the oldest due task waits for %.0f s" : "no task waits for long (%.1f s)", late);
  doctor_say(doctor, blocked > BLOCKED_S ? FINDING_WARN : FINDING_OK, "blocked tasks",
             "the table of heads (outbox_heads) names the task before it: cancel that, see why it fails, or let its "
             "route park what fails",
             blocked > BLOCKED_S
                 ? "the oldest due task that is blocked waits for %.0f s behind another of its order_key"
                 : "no task is blocked for long (%.1f s)",
             blocked);
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
  text_shard_set(&shards, doctor->op->shards);
  while (ok && db_next(&result, &row, 2)) {
    char due[32], claimed[32], awaiting[32], route[ROW_ROUTE_CAP];
    ok = row_route_shown(&row, 0, route) && count_due(doctor, route, &shards, TASK_SCHEDULED, due, err) &&
         count_due(doctor, route, &shards, TASK_CLAIMED, claimed, err) &&
         count_due(doctor, route, &shards, TASK_AWAITING, awaiting, err);
    if (ok)
      doctor_say(doctor, FINDING_OK, "to be sent", "", "%s: %s due%s%.19s, %s claimed, %s awaiting a result", route,
                 due, row.fields[1] ? ", the oldest since " : "", row.fields[1] ? row.fields[1] : "", claimed,
                 awaiting);
    any = true;
  }
  if (asked)
    db_results_free(&result, 1);
  text_free(&shards);
  if (!ok)
    doctor_say(doctor, FINDING_WARN, "to be sent", "look at `duebox route list`", "they could not be counted: %s",
               err->text);
  else if (!any)
    doctor_say(doctor, FINDING_OK, "to be sent", "", "nothing is due, claimed or awaiting a result");
  return true;
}

static bool check_held(struct doctor *doctor, struct err *err) {
  enum { ROUTES_SAID = 20, COUNTED = 10000 };
  struct db_result result;
  struct db_row row;
  if (!op_query(doctor->op, opsql_doctor_held, ARGS(UNSIGNED("cap", ROUTES_SAID), UNSIGNED("most", COUNTED)),
                "counting held tasks", &result, err))
    return false;
  char route[ROW_ROUTE_CAP];
  uint64_t count = 0, all = 0;
  for (; db_next(&result, &row, 2) && row_route_shown(&row, 0, route) && db_u64(&row, 1, UINT64_MAX, &count);
       all += count)
    doctor_say(doctor, FINDING_WARN, "held tasks",
               "define the route, or correct the name that the application writes; then they go on by themselves",
               "%s: %s%" PRIu64 " wait because no daemon has this route", route, count == COUNTED ? "at least " : "",
               count);
  db_results_free(&result, 1);
  if (all == 0)
    doctor_say(doctor, FINDING_OK, "held tasks", "", "none: every task's route is known");
  return true;
}

/* What got past the table's CHECKs and no daemon reads, and ids that come to their end. */
static bool check_misfits(struct doctor *doctor, struct err *err) {
  enum { ROWS_SAID = 20 };
  struct db_result result;
  struct db_row row;
  if (!op_query(doctor->op, opsql_doctor_misfits,
                ARGS(UNSIGNED("cap", ROWS_SAID), STRING("name", doctor->op->table),
                     UNSIGNED("shard_count", doctor->op->conn->shards)),
                "looking at rows", &result, err))
    return false;
  bool any = false;
  for (; db_next(&result, &row, 3); any = true)
    doctor_say(doctor, FINDING_WARN, row.fields[0] ? row.fields[0] : "", row.fields[2] ? row.fields[2] : "", "%s",
               row.fields[1] ? row.fields[1] : "a row cannot be read");
  db_results_free(&result, 1);
  if (!any)
    doctor_say(doctor, FINDING_OK, "unreadable tasks", "", "none: daemons can read every task");
  return true;
}

static bool check_dead(struct doctor *doctor, struct err *err) {
  enum { LATEST = 10000, ROUTES_SAID = 20 };
  struct db_result result;
  struct db_row row;
  if (!op_query(doctor->op, opsql_doctor_dead, ARGS(UNSIGNED("cap", LATEST)), "looking at dead tasks", &result, err))
    return false;
  uint64_t count = 0, routes = 0;
  char route[ROW_ROUTE_CAP];
  for (; db_next(&result, &row, 4) && row_route_shown(&row, 0, route) && db_u64(&row, 1, UINT64_MAX, &count);
       routes++) {
    char word[SHELL_ROOM(STORE_ROUTE_MAX + STORE_WIDER)], cure[2 * sizeof word + 100];
    const char *class = row.fields[3];
    shell_word(word, sizeof word, route);
    snprintf(cure, sizeof cure, "duebox dead list --route %s; when it is mended: duebox dead retry --route %s", word,
             word);
    if (routes < ROUTES_SAID)
      doctor_say(doctor, FINDING_WARN, "dead tasks", cure,
                 "%s: %s%" PRIu64 " ended dead within a day, the last at %.19s%s%s", route,
                 count == LATEST ? "at least " : "", count, row.fields[2] ? row.fields[2] : "?", class ? ": " : "",
                 class ? class : "");
  }
  db_results_free(&result, 1);
  if (routes > ROUTES_SAID)
    doctor_say(doctor, FINDING_WARN, "dead tasks", "duebox route list", "%" PRIu64 " more routes had some within a day",
               routes - ROUTES_SAID);
  if (routes == 0)
    doctor_say(doctor, FINDING_OK, "dead tasks", "", "none within a day");
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
  uint64_t all = 0, before = 0, shifted = 0;
  if (!doctor_row(doctor, opsql_doctor_zone, ARGS(SIGNED("offset", offset)), 4, &result, &row, &found, err))
    return false;
  bool ok =
      !found || (db_u64(&row, 0, 2000, &all) && db_u64(&row, 1, 2000, &before) && db_u64(&row, 2, 2000, &shifted));
  const char *route = ok && found && row.fields[3] ? row.fields[3] : "?";
  const char *cure = "let applications write delay_ms, or due_at in UTC: docs/CLIENTS.md shows how for each driver";
  if (ok && before)
    doctor_say(doctor, FINDING_WARN, "due times", cure,
               "%" PRIu64 " of %" PRIu64 " due_at of the last hour were past at the insert (%s): local times?", before,
               all, route);
  else if (ok && shifted)
    doctor_say(doctor, FINDING_WARN, "due times", cure,
               "%" PRIu64 " of %" PRIu64
               " due_at of the last hour are %.4g h ahead, as this machine's zone is (%s): local times?",
               shifted, all, (double)offset / 3600, route);
  else if (ok)
    doctor_say(doctor, FINDING_OK, "due times", "", "no sign of local times in due_at");
  db_results_free(&result, 1);
  return ok || db_unexpected(err, "looking at due times");
}

static bool check_quarantine(struct doctor *doctor, struct err *err) {
  struct db_result result;
  struct db_row row;
  bool found;
  uint64_t count = 0;
  if (!doctor_row(doctor, opsql_doctor_quarantine, NO_ARGS, 2, &result, &row, &found, err))
    return false;
  bool ok = found && db_u64(&row, 0, UINT64_MAX, &count);
  if (ok && count)
    doctor_say(doctor, FINDING_WARN, "quarantine", "read them: duebox quarantine list",
               "%" PRIu64 " result records that fit no task, are flawed or say the opposite, the last at %s", count,
               row.fields[1] ? row.fields[1] : "?");
  else if (ok)
    doctor_say(doctor, FINDING_OK, "quarantine", "", "empty");
  db_results_free(&result, 1);
  return ok || db_unexpected(err, "looking at the quarantine");
}

/* Our tables, behind the name of the first. */
static const char *const ours[] = {"", "_history", "_attempts", "_shards", "_heads", "_instances", "_routes"};

#define ADDED_CURE                                                                                                     \
  "drop it, or see to it that it is quick, never fails, and sets no column that sql/README.md, Users, leaves to the "  \
  "INSERT; what it refuses is DUEBOX-SETTLE-REFUSED in the log"
#define ADDED_TEXT "%s: what it waits for, refuses or deletes, duebox's own writes do too"

struct foreign_checks {
  const struct doctor *doctor;
  const char *table;
  bool any;
};

/* Names of CHECKs have no case; where those of tables have none either, the configuration may write it otherwise than
 * the one by which the table was made. On MariaDB it is one for others alone, as our sessions pass over it (db_conn.c).
 */
static void say_check(void *ctx, const char *name, bool of_column) {
  struct foreign_checks *checks = ctx;
  const struct doctor *doctor = checks->doctor;
  size_t len = strlen(doctor->op->table);
  char text[600];
  if (!of_column && strncasecmp(name, doctor->op->table, len) == 0 && name[len] == '_' &&
      schema_has_check(name + len + 1))
    return;
  checks->any = true;
  snprintf(text, sizeof text, "CHECK %s%s of %s is no rule of duebox", of_column ? "of column " : "", name,
           checks->table);
  if (server_is_mysql(doctor->op->conn))
    doctor_say(doctor, FINDING_WARN, "checks", ADDED_CURE, ADDED_TEXT, text);
  else
    doctor_say(doctor, FINDING_WARN, "checks",
               "drop it, or make it a trigger: what that refuses is DUEBOX-SETTLE-REDUCED or -REFUSED in the log",
               "%s: daemons write over it (check_constraint_checks = 0), for they must end rows that break a rule",
               text);
}

struct sought_check {
  const char *name;
  bool found;
};

static void seek_check(void *ctx, const char *name, bool of_column) {
  struct sought_check *sought = ctx;
  sought->found = sought->found || (!of_column && strcasecmp(name, sought->name) == 0);
}

/* Rules of the outbox (create: as the server prints the table) that somebody has dropped, or switched off on MySQL. */
static void say_lost_checks(struct foreign_checks *checks, const char *create) {
  static const char cure[] = "ALTER TABLE .. ADD it again, as `duebox migrate --show-sql` prints it last";
  static const char harm[] = "it takes rows that cannot be sent, each of which ends dead";
  char name[96], full[192];
  for (size_t n = 0; schema_check_of_outbox(n, name, sizeof name); n++) {
    snprintf(full, sizeof full, "%s_%s", checks->doctor->op->table, name);
    struct sought_check sought = {.name = full};
    table_checks(create, seek_check, &sought);
    checks->any = checks->any || !sought.found;
    if (!sought.found)
      doctor_say(checks->doctor, FINDING_WARN, "checks", cure, "table %s lacks the CHECK %s: %s", checks->table, full,
                 harm);
  }
  if (strstr(create, "NOT ENFORCED")) {
    checks->any = true;
    doctor_say(checks->doctor, FINDING_WARN, "checks", "ALTER TABLE .. ALTER CHECK .. ENFORCED",
               "table %s has a CHECK that is not enforced: %s", checks->table, harm);
  }
}

static bool check_checks(struct doctor *doctor, struct err *err) {
  char table[96];
  struct foreign_checks checks = {.doctor = doctor, .table = table};
  struct db_result result;
  struct db_row row;
  for (size_t i = 0; i < ARRAY_LEN(ours); i++) {
    snprintf(table, sizeof table, "%s%s", doctor->op->table, ours[i]);
    if (!op_query(doctor->op, opsql_doctor_create, ARGS(WORD("suffix", ours[i])), "looking for CHECKs", &result, err)) {
      if (op_status(err) == STORE_DOWN || err->code == DOCTOR_NO_TABLE)
        return false;
      doctor_say(doctor, FINDING_WARN, "checks", "run sql/examples/grants.sql again", "%s could not be read: %s", table,
                 err->text);
      return true;
    }
    bool ok = db_next(&result, &row, 2) && row.fields[1];
    if (ok)
      table_checks(row.fields[1], say_check, &checks);
    if (ok && i == 0)
      say_lost_checks(&checks, row.fields[1]);
    db_results_free(&result, 1);
    if (!ok)
      return db_unexpected(err, "looking for CHECKs");
  }
  if (!checks.any)
    doctor_say(doctor, FINDING_OK, "checks", "", "the tables have no CHECK but duebox's own");
  return true;
}

/* A trigger that waits or fails does so in each of our transactions; a foreign key can refuse them, or delete with
 * them. */
static bool check_added(struct doctor *doctor, struct err *err) {
  enum { SAID = 20 };
  struct text tables = {0};
  struct db_result result;
  struct db_row row;
  char name[96];
  for (size_t i = 0; i < ARRAY_LEN(ours); i++) {
    text_puts(&tables, i ? "," : "");
    text_sql(&tables, name, (size_t)snprintf(name, sizeof name, "%s%s", doctor->op->table, ours[i]));
  }
  bool asked = op_query(doctor->op, opsql_doctor_added, ARGS(RAW("tables", tables), UNSIGNED("cap", SAID)),
                        "looking for triggers and foreign keys", &result, err);
  text_free(&tables);
  if (!asked)
    return false;
  bool any = false;
  for (; db_next(&result, &row, 2); any = true) {
    const char *what = row.fields[0] ? row.fields[0] : "", *which = row.fields[1] ? row.fields[1] : "?";
    doctor_say(doctor, FINDING_WARN, what, ADDED_CURE, ADDED_TEXT, which);
  }
  db_results_free(&result, 1);
  if (!any)
    doctor_say(doctor, FINDING_OK, "triggers", "", "no trigger and no foreign key that this user may see");
  return true;
}

static bool check_order_keys(struct doctor *doctor, struct err *err) {
  enum { LOOKED_AT = 10000, SAID = 20 };
  struct db_result result;
  struct db_row row;
  if (!op_query(doctor->op, opsql_doctor_order_keys, ARGS(UNSIGNED("most", LOOKED_AT), UNSIGNED("cap", SAID)),
                "looking at order keys", &result, err))
    return false;
  bool any = false;
  for (; db_next(&result, &row, 5) && row.fields[0] && row.fields[1] && row.fields[2] && row.fields[3] && row.fields[4];
       any = true)
    doctor_say(doctor, FINDING_WARN, "order keys",
               "let applications leave out shard and not change order_key; move_to_shard brings them together",
               "%s: tasks of order_key %s are in %s shards (ids %s to %s), where daemons do not know of each other's",
               row.fields[1], row.fields[0], row.fields[2], row.fields[3], row.fields[4]);
  db_results_free(&result, 1);
  if (!any)
    doctor_say(doctor, FINDING_OK, "order keys", "", "the tasks of each are in one shard");
  return true;
}

/* A task that others of its order_key wait for, and that waits for a host which is not there. */
static bool check_hosts(struct doctor *doctor, struct err *err) {
  enum { SAID = 20 };
  struct db_result result;
  struct db_row row;
  if (!op_query(doctor->op, opsql_doctor_stranded, ARGS(UNSIGNED("cap", SAID)), "looking at bound tasks", &result, err))
    return false;
  char cure[200], route[ROW_ROUTE_CAP];
  bool any = false;
  for (; db_next(&result, &row, 5) && row.fields[0] && row_route_shown(&row, 1, route) && row.fields[2] &&
         row.fields[3] && row.fields[4];
       any = true) {
    snprintf(
        cure, sizeof cure,
        "start the daemon of that host, give the task another (sql/examples/bind.sql), or: duebox task cancel id:%s",
        row.fields[0]);
    doctor_say(doctor, FINDING_WARN, "hosts", cure,
               "%s: others of order_key %s wait for the task %s, which waits for the host %s, where no daemon lives",
               route, row.fields[2], row.fields[3], row.fields[4]);
  }
  db_results_free(&result, 1);
  if (!any)
    doctor_say(doctor, FINDING_OK, "hosts", "", "no order_key waits for a host that is not there");
  return true;
}

/* One that is not there, or another one under its name (row: table, name, .., as it was made, as it is). */
static void say_index(const struct doctor *doctor, const struct db_row *row, bool needed) {
  enum finding level = needed ? FINDING_FAIL : FINDING_WARN;
  const char *harm =
      needed ? "daemons cannot work without it, or what must be unique is not" : "searching there is slow";
  if (row->fields[4])
    doctor_say(doctor, level, "indexes", "ALTER TABLE .. DROP it, and ADD it as `duebox migrate --show-sql` prints it",
               "the index %s of table %s is (%s) instead of (%s): %s", row->fields[1], row->fields[0], row->fields[4],
               row->fields[3], harm);
  else
    doctor_say(doctor, level, "indexes", "ALTER TABLE .. ADD it again, as `duebox migrate --show-sql` prints it",
               "table %s lacks the index %s: %s", row->fields[0], row->fields[1], harm);
}

/* Tools that look for indexes which nobody has used for some days drop those for a rare case first. *whole false: the
 * other checks would fail. */
static bool check_indexes(struct doctor *doctor, bool *whole, struct err *err) {
  struct db_result result;
  struct db_row row;
  uint64_t needed = 0;
  if (!op_query(doctor->op, opsql_doctor_indexes, NO_ARGS, "looking for indexes", &result, err))
    return false;
  bool ok = true, any = false;
  while (ok && db_next(&result, &row, 5)) {
    ok = row.fields[0] && row.fields[1] && db_u64(&row, 2, 1, &needed) && row.fields[3];
    if (!ok)
      break;
    any = true;
    *whole = *whole && !(needed && (!row.fields[4] || strstr(row.fields[4], ", ignored")));
    say_index(doctor, &row, needed);
  }
  db_results_free(&result, 1);
  if (ok && !any)
    doctor_say(doctor, FINDING_OK, "indexes", "", "all are there");
  return ok || db_unexpected(err, "looking for indexes");
}

static bool check_columns(struct doctor *doctor, struct err *err) {
  struct db_result result;
  struct db_row row;
  bool any = false;
  if (!op_query(doctor->op, opsql_doctor_columns, ARGS(STRING("name", doctor->op->table)), "looking at columns",
                &result, err))
    return false;
  while (db_next(&result, &row, 2)) {
    any = true;
    doctor_say(doctor, FINDING_FAIL, "columns", "ALTER TABLE .. MODIFY it, as `duebox migrate --show-sql` prints it",
               "the column %s of table %s %s", row.fields[0] ? row.fields[0] : "", doctor->op->table,
               row.fields[1] ? row.fields[1] : "");
  }
  db_results_free(&result, 1);
  if (!schema_columns(doctor->op->conn, err)) {
    if (err->code != DB_E_ROW)
      return false;
    any = true;
    doctor_say(doctor, FINDING_FAIL, "columns",
               "ALTER TABLE .. ADD COLUMN it again, as `duebox migrate --show-sql` prints it; give one that is not of "
               "duebox a default",
               "%s", err->text);
  }
  if (!any)
    doctor_say(doctor, FINDING_OK, "columns", "", "all are there, and defaults and types are those of the migrations");
  return true;
}

bool doctor_tables(struct doctor *doctor, struct err *err) {
  static doctor_check *const checks[] = {
      check_partitions, check_shards, check_added,      check_columns,  check_checks,  check_routes,
      check_addresses,  check_names,  check_backlog,    check_held,     check_misfits, check_order_keys,
      check_hosts,      check_dead,   check_quarantine, check_due_zone, check_due};
  bool whole = true;
  return check_indexes(doctor, &whole, err) && (!whole || doctor_run(doctor, checks, ARRAY_LEN(checks), err));
}
