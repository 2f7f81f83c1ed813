/* SPDX-License-Identifier: MIT
 *
 * outbox/intervene.c - people's commands for living rows, by the daemon that holds their shard. Every command leaves an
 * audit line in the same transaction.
 */
#include <stdlib.h>
#include <string.h>

#include "outbox/db_error.h"
#include "outbox/guard.h"
#include "outbox/ops.h"
#include "outbox/row.h"
#include "outbox/server.h"
#include "outbox/write.h"
#include "query.h"

#define WHAT "changing tasks"

struct intervene_unit {
  const struct shard_lease *lease;
  enum intervention verb;
  const uint64_t *ids;
  size_t count;
  int64_t due_us, keep_us;
  const char *actor, *filter, *reason;
  enum intervened *became;
  struct decision *decisions; /* of the rows that may be changed, by id */
  struct decision **sorted;
  char (*message_ids)[STORE_ID_MAX + STORE_WIDER + 1]; /* of the decisions */
  size_t matched;
  bool busy; /* another transaction holds what is written beside the rows */
  struct text before;
};

/* Of intervene_lock.sql. */
enum {
  COL_ID = 0,
  COL_MESSAGE_ID = 1,
  COL_SHARD = 3,
  COL_ATTEMPT = 4,
  COL_FAILURES = 5,
  COL_MAYBE_SENT = 13,
  COL_RECOVERIES = 14,
  COL_STATE = 15,
  COL_CLAIM_LOST = 16,
  COLUMNS
};

static bool allows(enum intervention verb, enum task_state state, bool claim_lost) {
  if (verb == INTERVENE_RESCHEDULE)
    return state == TASK_SCHEDULED;
  return state == TASK_SCHEDULED || state == TASK_HELD || state == TASK_BLOCKED || state == TASK_AWAITING || claim_lost;
}

/* The before image of a row: what a command without a daemon leaves too (operator_change.c). */
static void add_before(struct text *json, const struct db_row *row) {
  static const struct {
    const char *name;
    bool number;
  } columns[] = {{"id", false},          {"message_id", false},  {"state", false},     {"shard", true},
                 {"attempt", true},      {"failures", true},     {"due_at", false},    {"first_due_at", false},
                 {"priority", true},     {"max_attempts", true}, {"timeout_ms", true}, {"expires_at", false},
                 {"target_host", false}, {"maybe_sent", true}};
  for (unsigned i = 0; i < sizeof columns / sizeof columns[0]; i++) {
    text_puts(json, i ? ", \"" : "{\"");
    text_puts(json, columns[i].name);
    text_puts(json, "\": ");
    if (columns[i].number && row->fields[i])
      text_add(json, row->fields[i], row->lengths[i]);
    else
      text_json(json, row->fields[i], row->lengths[i], SIZE_MAX);
  }
  text_puts(json, "}");
}

static void mark(struct intervene_unit *u, uint64_t id, enum intervened became) {
  for (size_t i = 0; i < u->count; i++)
    if (u->ids[i] == id)
      u->became[i] = became;
}

static bool take_row(struct intervene_unit *u, const struct db_row *row, struct err *err) {
  uint64_t id, shard, state, attempt, failures, recoveries, claim_lost, maybe_sent;
  if (!db_u64(row, COL_ID, UINT64_MAX, &id) || !db_u64(row, COL_SHARD, STORE_SHARDS_MAX - 1, &shard) ||
      !db_u64(row, COL_STATE, TASK_STATES, &state) || state == 0 || !db_u64(row, COL_ATTEMPT, UINT32_MAX, &attempt) ||
      !db_u64(row, COL_FAILURES, UINT32_MAX, &failures) || !db_u64(row, COL_RECOVERIES, UINT32_MAX, &recoveries) ||
      !db_u64(row, COL_CLAIM_LOST, 1, &claim_lost) || !db_u64(row, COL_MAYBE_SENT, 1, &maybe_sent))
    return db_unexpected(err, WHAT);
  enum task_state from = (enum task_state)(state - 1);
  bool allowed = allows(u->verb, from, claim_lost);
  mark(u, id, allowed ? INTERVENED_DONE : INTERVENED_NOT);
  if (!allowed)
    return true;
  char *message_id = u->message_ids[u->matched];
  if (!db_copy(row, COL_MESSAGE_ID, message_id, sizeof u->message_ids[0]))
    return db_unexpected(err, WHAT);
  if (attempt == 0 && maybe_sent && recoveries == 0) /* its shard said so, which the history does not know */
    recoveries = 1;
  text_puts(&u->before, u->matched ? ", " : "[");
  add_before(&u->before, row);
  u->decisions[u->matched] = (struct decision){.id = id,
                                               .message_id = {message_id, row->lengths[COL_MESSAGE_ID]},
                                               .shard = (uint8_t)shard,
                                               .from = from,
                                               .attempt_from = (uint32_t)attempt,
                                               .event = EVENT_CANCEL,
                                               .attempt = (uint32_t)attempt,
                                               .failures = (uint32_t)failures,
                                               .recoveries = (uint32_t)recoveries,
                                               .keep_us = u->keep_us};
  u->sorted[u->matched] = &u->decisions[u->matched];
  u->matched++;
  return true;
}

/* All that live are locked by somebody else, until they are found to be locked by us. */
static bool mark_living(struct intervene_unit *u, struct db_result *living, struct err *err) {
  struct db_row row;
  uint64_t id;
  for (size_t i = 0; i < u->count; i++)
    u->became[i] = INTERVENED_NOT;
  while (db_next(living, &row, 1)) {
    if (!db_u64(&row, 0, UINT64_MAX, &id))
      return db_unexpected(err, WHAT);
    mark(u, id, INTERVENED_LOCKED);
  }
  return true;
}

/* Locks those of the rows of which nobody else holds anything, with their entries in indexes: a change would wait for
 * one. *held: the shard is ours at the moment; the fence comes with the COMMIT. */
static bool lock_rows(struct store_session *ss, struct intervene_unit *u, bool *held, struct err *err) {
  struct db_result results[4];
  struct db_row row;
  struct text own = {0};
  text_append(&own, session_ids(ss, u->ids, u->count));
  if (!server_lock_entries(ss, WHAT, &own, err)) {
    text_free(&own);
    return false;
  }
  session_begin_transaction(ss);
  guard_ask_shards(ss, u->lease, 1);
  session_add(ss, query_intervene_lock, ARGS(RAW("ids", own), UNSIGNED("shard", u->lease->shard)));
  session_add(ss, query_intervene_living, ARGS(RAW("ids", ss->part), UNSIGNED("shard", u->lease->shard)));
  text_free(&own);
  if (!session_send(ss, WHAT, results, 4, err))
    return false;
  *held = results[1].count == 1;
  text_clear(&u->before);
  u->matched = 0;
  bool ok = mark_living(u, &results[3], err);
  while (ok && u->matched < u->count && db_next(&results[2], &row, COLUMNS))
    ok = take_row(u, &row, err);
  text_puts(&u->before, "]");
  db_results_free(results, 4);
  return ok;
}

/* Redone after a commit without an answer: a task that is cancelled was cancelled by us, as far as anybody can tell.
 * Any other whose row is gone has gone its way, and was not changed. */
static bool find_cancelled(struct store_session *ss, struct intervene_unit *u, struct err *err) {
  struct db_result result;
  struct db_row row;
  uint64_t id;
  if (u->verb != INTERVENE_CANCEL)
    return true;
  session_begin(ss);
  session_add(ss, query_intervene_seen, ARGS(RAW("ids", *session_ids(ss, u->ids, u->count))));
  if (!session_send(ss, WHAT, &result, 1, err))
    return false;
  bool ok = true;
  while (ok && db_next(&result, &row, 1)) {
    ok = db_u64(&row, 0, UINT64_MAX, &id) || db_unexpected(err, WHAT);
    if (ok)
      mark(u, id, INTERVENED_DONE);
  }
  db_results_free(&result, 1);
  return ok;
}

static bool write_cancel(struct store_session *ss, struct intervene_unit *u, struct err *err) {
  struct text shards = {0};
  text_u64(&shards, u->lease->shard);
  struct writer w = {.ss = ss,
                     .what = WHAT,
                     .decisions = u->sorted,
                     .count = u->matched,
                     .fence = "TRUE",
                     .shards = &shards,
                     .no_wait = true};
  bool ok = write_decisions(&w, err) && write_flush(&w, err);
  text_free(&shards);
  return ok && (!w.differs || db_unexpected(err, WHAT));
}

static bool write_reschedule(struct store_session *ss, struct intervene_unit *u, struct err *err) {
  struct db_result result;
  text_clear(&ss->part);
  for (size_t i = 0; i < u->matched; i++) {
    text_puts(&ss->part, i ? "," : "");
    text_u64(&ss->part, u->decisions[i].id);
  }
  session_add_no_wait(ss, query_intervene_reschedule, ARGS(TIME("due_at", u->due_us), RAW("ids", ss->part)));
  if (!session_send(ss, WHAT, &result, 1, err))
    return false;
  db_results_free(&result, 1);
  return true;
}

/* The audit line, the fence and the COMMIT. */
static bool write_audit(struct store_session *ss, struct intervene_unit *u, struct err *err) {
  struct db_result results[3];
  session_begin(ss);
  session_audit(ss, u->actor, u->verb == INTERVENE_CANCEL ? "cancel" : "reschedule", u->reason, u->filter, u->matched,
                &u->before);
  guard_leases(ss, u->lease, 1);
  if (!guard_commit(ss, WHAT, 3, results, err))
    return false;
  db_results_free(results, 3);
  return true;
}

static bool change_rows(struct store_session *ss, struct intervene_unit *u, struct err *err) {
  bool held, locked[STORE_SHARDS_MAX];
  if (!session_locked_shards(ss, session_skip(ss, false), u->lease, 1, locked, err))
    return false;
  u->busy = locked[u->lease->shard];
  if (u->busy)
    return true;
  if (!lock_rows(ss, u, &held, err))
    return false;
  for (size_t i = 0; !held && i < u->matched; i++)
    mark(u, u->decisions[i].id, INTERVENED_NOT);
  if (!held)
    u->matched = 0;
  if (ss->unknown && !find_cancelled(ss, u, err))
    return false;
  if (u->matched == 0)
    return session_rollback(ss, WHAT, err);
  session_begin(ss);
  return (u->verb == INTERVENE_CANCEL ? write_cancel(ss, u, err) : write_reschedule(ss, u, err)) &&
         write_audit(ss, u, err);
}

/* A lock that is met in spite of all is waited for by nobody: this stops all reading. */
static bool intervene_unit(struct store_session *ss, void *arg, struct err *err) {
  struct intervene_unit *u = arg;
  if (change_rows(ss, u, err))
    return true;
  u->busy = err->code == DB_LOCK_WAIT;
  if (u->busy)
    session_met_lock(ss);
  return u->busy && session_rollback(ss, WHAT, err);
}

static bool was_locked(const struct intervene_unit *u) {
  bool locked = u->busy;
  for (size_t i = 0; i < u->count; i++)
    locked = locked || u->became[i] == INTERVENED_LOCKED;
  return locked;
}

enum store_status ops_intervene(struct store_session *ss, const struct shard_lease *lease, enum intervention verb,
                                const uint64_t *ids, size_t count, int64_t due_us, const char *actor,
                                const char *filter, const char *reason, int64_t keep_us, enum intervened *became,
                                struct err *err) {
  if (count == 0)
    return STORE_OK;
  struct intervene_unit unit = {.lease = lease,
                                .verb = verb,
                                .ids = ids,
                                .count = count,
                                .due_us = due_us,
                                .keep_us = keep_us,
                                .actor = actor,
                                .filter = filter,
                                .reason = reason,
                                .became = became,
                                .decisions = calloc(count, sizeof *unit.decisions),
                                .sorted = calloc(count, sizeof *unit.sorted),
                                .message_ids = calloc(count, sizeof *unit.message_ids)};
  enum store_status status = STORE_DOWN;
  if (unit.decisions && unit.sorted && unit.message_ids)
    status = session_run(ss, WHAT, intervene_unit, &unit, err);
  else
    err_set(err, DB_E_NO_MEMORY, WHAT ": out of memory; %s", db_error_cure(DB_E_NO_MEMORY));
  if (ss->unknown && (status == STORE_BUSY || (status == STORE_OK && was_locked(&unit)))) {
    err_set(err, DB_LOCK_WAIT, WHAT ": a COMMIT got no answer, and the rows are locked now; look at the tasks");
    status = STORE_DOWN;
  } else if (status == STORE_OK && unit.busy) {
    for (size_t i = 0; i < count; i++)
      became[i] = INTERVENED_LOCKED;
    err_set(err, DB_LOCK_WAIT,
            WHAT ": another transaction holds what is written beside the row; try again, or look for it in "
                 "information_schema.INNODB_TRX");
    status = STORE_BUSY;
  }
  text_free(&unit.before);
  free(unit.decisions);
  free(unit.sorted);
  free(unit.message_ids);
  return status;
}

struct locate_unit {
  const char *const *names;
  size_t count;
  struct task_place *places;
};

/* Of locate.sql. */
enum { PLACE_CHOICE = 5, PLACE_EXPIRES = 6, PLACE_MESSAGE_ID = 7, PLACE_BYTES = 8, PLACE_COLUMNS };

static bool read_place(const struct db_row *row, struct task_place *place) {
  uint64_t shard, state, maybe_sent;
  *place = (struct task_place){.found = true};
  bool ok = db_u64(row, 0, UINT64_MAX, &place->id) && db_u64(row, 1, UINT8_MAX, &shard) &&
            db_copy(row, 2, place->route, sizeof place->route) && db_u64(row, 3, TASK_STATES, &state) &&
            db_u64(row, 4, 1, &maybe_sent) && db_u64(row, PLACE_BYTES, UINT64_MAX, &place->bytes) &&
            row->fields[PLACE_MESSAGE_ID];
  if (!ok)
    return false;
  place->misfit = shard >= STORE_SHARDS_MAX || state == 0;
  place->shard = place->misfit ? 0 : (uint8_t)shard;
  place->state = place->misfit ? TASK_SCHEDULED : (enum task_state)(state - 1);
  place->maybe_sent = maybe_sent;
  place->expires_us = row_time_or_past(row, PLACE_EXPIRES);
  return true;
}

/* The message id that a row's name is itself; "" = none. Whoever puts "message_id:" in front of every message id is
 * never in doubt. */
static const char *called(const struct task_name *name) { return name->is_row ? name->whole : ""; }

/* Rows that are found by a message id come first. */
static bool take_place(struct locate_unit *u, const struct db_row *row) {
  struct task_place place;
  uint64_t choice;
  if (!read_place(row, &place) || !db_u64(row, PLACE_CHOICE, 2, &choice))
    return false;
  const char *message_id = row->fields[PLACE_MESSAGE_ID];
  for (size_t i = 0; i < u->count; i++) {
    struct task_name name = task_name_of(u->names[i]);
    struct task_place *known = &u->places[i];
    bool copied = choice == 1 && task_name_is(called(&name), message_id) && name.row != place.id;
    bool named = choice == 1 ? task_name_is(name.message_id, message_id) : name.is_row && name.row == place.id;
    bool ambiguous = known->ambiguous || copied || (named && known->found && known->id != place.id);
    if (copied || (named && !known->found))
      *known = place;
    known->ambiguous = ambiguous;
  }
  return true;
}

static bool locate_unit(struct store_session *ss, void *arg, struct err *err) {
  struct locate_unit *u = arg;
  struct db_result result;
  struct db_row row;
  struct text message_ids = {0}, ids = {0};
  for (size_t i = 0; i < u->count; i++) {
    struct task_name name = task_name_of(u->names[i]);
    const char *message_id = *called(&name) ? name.whole : name.message_id;
    text_puts(&message_ids, i ? ", " : "");
    text_sql(&message_ids, message_id, strlen(message_id));
    text_puts(&ids, i ? ", " : "");
    text_u64(&ids, name.row);
    u->places[i] = (struct task_place){0};
  }
  session_begin(ss);
  session_add(ss, query_locate, ARGS(RAW("message_ids", message_ids), RAW("ids", ids)));
  text_free(&message_ids);
  text_free(&ids);
  if (!session_send(ss, "finding a task", &result, 1, err))
    return false;
  bool ok = true;
  while (ok && db_next(&result, &row, PLACE_COLUMNS))
    ok = take_place(u, &row) || db_unexpected(err, "finding a task");
  db_results_free(&result, 1);
  return ok;
}

enum store_status ops_locate(struct store_session *ss, const char *const *names, size_t count,
                             struct task_place *places, struct err *err) {
  return session_run(ss, "finding a task", locate_unit, &(struct locate_unit){names, count, places}, err);
}
