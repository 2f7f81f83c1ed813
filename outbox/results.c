/* SPDX-License-Identifier: MIT
 *
 * outbox/results.c - what consumers answer: found by message id, applied once, never in the way of the next.
 *
 * Rows are found without locks and then locked in primary-key order, as settling does, so that the two seldom deadlock
 * (the result of a task often arrives while its publishing is being recorded). No fence: whoever holds the shard finds
 * that the row has moved on. A row that a foreign transaction holds for long is passed over and its result is busy.
 * Where somebody holds only an entry of another index, the batch is applied by halves, as in settling. While somebody
 * holds the quarantine as a whole, what is to go there waits, and nothing else does. Whether a result was there before
 * is told by its line in outbox_attempts, if the row's state does not tell. A transaction takes as many as hold little
 * enough, with their rows (results_fit.h).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "outbox/db_error.h"
#include "outbox/halves.h"
#include "outbox/ops.h"
#include "outbox/quarantine.h"
#include "outbox/results_fit.h"
#include "outbox/results_form.h"
#include "outbox/results_judge.h"
#include "outbox/row.h"
#include "outbox/server.h"
#include "outbox/settle_judge.h"
#include "outbox/side_tables.h"
#include "outbox/write.h"
#include "query.h"

#define WHAT "storing results"

static int by_message_id(const void *a, const void *b) {
  const struct slot *x = a, *y = b;
  if (!x->result->broken != !y->result->broken)
    return x->result->broken ? 1 : -1;
  int order = strcmp(x->result->record.message_id, y->result->record.message_id);
  return order ? order : x->result < y->result ? -1 : x->result > y->result; /* as they were given */
}

static const char *id_of(const struct slot *slot) { return slot->result->record.message_id; }

/* The first of that task; those behind it follow. The end where there is none. */
static struct slot *find_slot(struct results_unit *u, const char *message_id) {
  size_t low = 0, high = u->parsed;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (strcmp(message_id, id_of(&u->slots[middle])) <= 0)
      high = middle;
    else
      low = middle + 1;
  }
  return &u->slots[low];
}

/* Whether the row alone does not tell if this result is new: it is over, or waits for something else by now. */
static bool is_doubtful(const struct slot *slot) {
  const struct result_row *row = &slot->row;
  bool runs = row->state == TASK_CLAIMED || row->state == TASK_AWAITING;
  return !slot->living || slot->attempt < row->attempt || (slot->attempt == row->attempt && !runs);
}

/* "'id','id',.." of the parsed slots, or of those among them that are doubtful. False when there is none. */
static bool message_ids(struct results_unit *u, bool doubtful_only, struct text *out) {
  const char *last = "", *id;
  text_clear(out);
  for (size_t i = 0; i < u->parsed; i++) {
    if (u->slots[i].postponed || (doubtful_only && !is_doubtful(&u->slots[i])) ||
        strcmp(last, id_of(&u->slots[i])) == 0)
      continue;
    last = id = id_of(&u->slots[i]);
    text_puts(out, out->len ? "," : "");
    text_sql(out, id, strlen(id));
  }
  return out->len > 0;
}

/* The rows of the results' tasks, as far as they live. */
static bool find_rows(struct store_session *ss, struct results_unit *u, struct results_fit *fit, struct err *err) {
  struct db_result result;
  struct db_row row;
  uint64_t id = 0;
  bool any = message_ids(u, false, &ss->part), ok = true;
  session_begin(ss);
  session_add(ss, query_result_find, ARGS(RAW("message_ids", ss->part)));
  if (!any)
    return true;
  if (!session_send(ss, WHAT, &result, 1, err))
    return false;
  while (ok && db_next(&result, &row, 1))
    if ((ok = (fit->count < u->parsed && db_u64(&row, 0, UINT64_MAX, &id)) || db_unexpected(err, WHAT)))
      results_fit_add(fit, id);
  db_results_free(&result, 1);
  return ok;
}

enum {
  COL_ID,
  COL_MESSAGE_ID,
  COL_SHARD,
  COL_STATE,
  COL_ATTEMPT,
  COL_FAILURES,
  COL_RECOVERIES,
  COL_MAX_ATTEMPTS,
  COL_TIMEOUT,
  COL_DUE,
  COL_ASKED_DUE,
  COL_EXPIRES,
  COL_ROUTE,
  COL_NOW,
  COL_CHANGE,
  COL_VERSION,
  COL_ANSWER_TO,
  COL_BYTES,
  COL_COUNT
};

static bool read_number(const struct db_row *row, unsigned column, uint32_t *out) {
  uint64_t value;
  if (!db_u64(row, column, UINT32_MAX, &value))
    return false;
  *out = (uint32_t)value;
  return true;
}

static bool read_row(const struct db_row *row, struct slot *slot) {
  struct result_row *out = &slot->row;
  uint64_t shard, state, change, bytes;
  *out = (struct result_row){.route = slot->route};
  bool ok = db_u64(row, COL_ID, UINT64_MAX, &out->id) && db_u64(row, COL_SHARD, STORE_SHARDS_MAX - 1, &shard) &&
            db_u64(row, COL_STATE, TASK_STATES, &state) && state > 0 && read_number(row, COL_ATTEMPT, &out->attempt) &&
            read_number(row, COL_FAILURES, &out->failures) && read_number(row, COL_RECOVERIES, &out->recoveries) &&
            read_number(row, COL_MAX_ATTEMPTS, &out->max_attempts) && read_number(row, COL_TIMEOUT, &out->timeout_ms) &&
            db_time(row, COL_DUE, &out->due_us) && db_time(row, COL_ASKED_DUE, &out->asked_due_us) &&
            (!row->fields[COL_EXPIRES] || db_time(row, COL_EXPIRES, &out->expires_us)) &&
            db_copy(row, COL_ROUTE, slot->route, sizeof slot->route) && db_time(row, COL_NOW, &out->now_us) &&
            db_u64(row, COL_CHANGE, CHANGE_SINCE_SENT, &change) &&
            db_u64(row, COL_ANSWER_TO, UINT64_MAX, &out->answer_to) && db_u64(row, COL_BYTES, SIZE_MAX, &bytes);
  if (!ok)
    return false;
  slot->row_bytes = (size_t)bytes;
  out->shard = (uint8_t)shard;
  out->state = (enum task_state)(state - 1);
  out->change = (enum row_change)change;
  out->version = task_version(&(struct duebox_bytes){row->fields[COL_VERSION], row->lengths[COL_VERSION]});
  results_met(slot);
  return true;
}

/* Calls take for each row and each slot that its message id belongs to. A row that cannot be read costs its own results
 * alone. */
static void each_row(struct results_unit *u, struct db_result *result, unsigned columns, unsigned id_column,
                     bool (*take)(const struct db_row *row, struct slot *slot)) {
  struct db_row row;
  while (db_next(result, &row, columns)) {
    const char *id = row.fields[id_column];
    for (struct slot *slot = id ? find_slot(u, id) : u->slots + u->parsed;
         slot < u->slots + u->parsed && strcmp(id, id_of(slot)) == 0; slot++)
      if (!take(&row, slot))
        slot->unreadable = true;
  }
}

static bool take_living(const struct db_row *row, struct slot *slot) {
  slot->busy = !slot->living && !slot->unreadable;
  slot->result->measured = slot->result->measured && !slot->busy;
  return slot->living ||
         (db_copy(row, 1, slot->route, sizeof slot->route) && db_u64(row, 2, UINT64_MAX, &slot->row.answer_to));
}

static bool take_postponed(const struct db_row *row, struct slot *slot) {
  slot->postponed = true;
  slot->result->measured = false;
  return true;
}

/* What was read of the rows, each for all its results. */
static void take_rows(struct results_unit *u, struct results_fit *fit, struct db_result *result) {
  struct db_row row;
  while (db_next(result, &row, COL_COUNT)) {
    const char *id = row.fields[COL_MESSAGE_ID];
    struct slot *first = id ? find_slot(u, id) : u->slots + u->parsed, *end = first;
    for (; end < u->slots + u->parsed && strcmp(id, id_of(end)) == 0; end++)
      end->unreadable = !read_row(&row, end);
    if (first < end)
      results_fit_row(fit, first, end);
  }
}

/* Some of the rows, in the transaction that those before began. */
static bool lock_part(struct store_session *ss, struct results_unit *u, struct results_fit *fit, struct err *err) {
  struct db_result results[3] = {0};
  const char *skip = session_skip(ss, u->met_again);
  size_t n = *skip ? 3 : 2;
  struct text own = {0};
  text_append(&own, &ss->part);
  if (!server_lock_rows(ss, WHAT, skip, &own, err)) {
    text_free(&own);
    return false;
  }
  session_begin_transaction(ss);
  session_add(ss, query_result_lock, ARGS(RAW("ids", own), WORD("skip", skip)));
  text_free(&own);
  if (*skip)
    session_add(ss, query_result_living, ARGS(RAW("ids", ss->part)));
  if (!session_send(ss, WHAT, results, n, err))
    return false;
  take_rows(u, fit, &results[1]);
  each_row(u, &results[2], 3, 0, take_living);
  db_results_free(results, n);
  return ss->continues = true;
}

/* Those that no room is left for are not locked, and their results are to be given again. */
static bool postpone_rest(struct store_session *ss, struct results_unit *u, const struct results_fit *fit,
                          struct err *err) {
  struct db_result result;
  if (!results_fit_rest(fit, &ss->part))
    return true;
  session_begin(ss);
  session_add(ss, query_result_living, ARGS(RAW("ids", ss->part)));
  if (!session_send(ss, WHAT, &result, 1, err))
    return false;
  each_row(u, &result, 3, 0, take_postponed);
  db_results_free(&result, 1);
  return true;
}

/* Locks as many of the rows as the transaction may take, in the order of their ids. */
static bool lock_rows(struct store_session *ss, struct results_unit *u, struct results_fit *fit, struct err *err) {
  bool ok = true;
  if (fit->count == 0)
    return session_start(ss, WHAT, err);
  while (ok && results_fit_part(fit, &ss->part))
    ok = lock_part(ss, u, fit, err);
  ss->continues = false;
  for (size_t i = 0; i < u->parsed && ok; i++)
    if (u->met_again && u->slots[i].busy)
      session_met_lock(ss);
  return ok && postpone_rest(ss, u, fit, err);
}

static bool meet_rows(struct store_session *ss, struct results_unit *u, struct err *err) {
  struct results_fit fit;
  if (!results_fit_begin(&fit, u, ss->results_like))
    return err_set(err, DB_E_NO_MEMORY, WHAT ": out of memory; %s", db_error_cure(DB_E_NO_MEMORY));
  bool ok = find_rows(ss, u, &fit, err) && lock_rows(ss, u, &fit, err);
  ss->results_like = results_fit_usual(&fit);
  results_fit_end(&fit);
  return ok;
}

/* Where there is a row, the route is that of the row: one of before that had its message id may have had another. */
static bool take_route(const struct db_row *row, unsigned column, struct slot *slot) {
  return slot->living || slot->busy || db_copy(row, column, slot->route, sizeof slot->route);
}

static bool take_seen(const struct db_row *row, struct slot *slot) {
  char outcome[33];
  uint32_t attempt;
  uint64_t id;
  if (!read_number(row, 1, &attempt) || !take_route(row, 2, slot) || !db_copy(row, 3, outcome, sizeof outcome) ||
      !db_u64(row, 4, UINT64_MAX, &id))
    return false;
  if (attempt == slot->attempt && is_doubtful(slot) && results_may_be_of(slot, id))
    results_seen(slot, outcome);
  return true;
}

static bool take_finished(const struct db_row *row, struct slot *slot) {
  uint64_t state;
  int64_t finished_us;
  uint32_t attempt;
  if (!db_u64(row, 1, TASK_STATES, &state) || state == 0 || !db_time(row, 3, &finished_us) ||
      !read_number(row, 4, &attempt))
    return false;
  if (!is_doubtful(slot) || (slot->finished && finished_us < slot->finished_us))
    return true;
  slot->finished = true;
  slot->finished_us = finished_us;
  slot->final = (enum task_state)(state - 1);
  slot->final_attempt = attempt;
  return take_route(row, 2, slot);
}

/* Whether a row that was changed since its attempt was recorded may have the content that this attempt sent. */
static bool may_be_same(const struct slot *slot) {
  const struct result_row *row = &slot->row;
  return slot->living && row->change == CHANGE_SINCE_SENT && row->state != TASK_CLAIMED &&
         slot->attempt == row->attempt && slot->result->record.status != RESULT_PROGRESS;
}

static bool take_same(const struct db_row *row, struct slot *slot) {
  slot->row.change = CHANGE_BEFORE_SENT;
  return true;
}

/* Finds those of the changed rows whose changes make no other task of them. */
static bool compare_content(struct store_session *ss, struct results_unit *u, struct err *err) {
  struct db_result result;
  text_clear(&ss->part);
  for (size_t i = 0; i < u->parsed; i++) {
    if (!may_be_same(&u->slots[i]))
      continue;
    text_puts(&ss->part, ss->part.len ? "," : "");
    text_u64(&ss->part, u->slots[i].row.id);
  }
  if (ss->part.len == 0)
    return true;
  session_begin(ss);
  session_add(ss, query_result_content, ARGS(RAW("ids", ss->part), WORD("content", ROW_CONTENT)));
  if (!session_send(ss, WHAT, &result, 1, err))
    return false;
  each_row(u, &result, 1, 0, take_same);
  db_results_free(&result, 1);
  return true;
}

/* Asks the attempts and the history about those slots whose row does not tell enough. Their rows are locked by now, so
 * nobody else applies a result to them between the answer and our commit. */
static bool look_back(struct store_session *ss, struct results_unit *u, struct err *err) {
  struct db_result results[2];
  if (!message_ids(u, true, &ss->part))
    return true;
  session_begin(ss);
  session_add(ss, query_result_seen, ARGS(RAW("message_ids", ss->part)));
  session_add(ss, query_result_finished, ARGS(RAW("message_ids", ss->part)));
  if (!session_send(ss, WHAT, results, 2, err))
    return false;
  each_row(u, &results[0], 5, 0, take_seen);
  each_row(u, &results[1], 5, 0, take_finished);
  db_results_free(results, 2);
  return true;
}

static bool write_quarantine(struct store_session *ss, struct results_unit *u, struct err *err) {
  struct quarantine quarantine = {.ss = ss, .no_wait = *session_skip(ss, u->met_again)};
  session_begin(ss);
  for (size_t i = 0; i < u->count; i++)
    if (*u->slots[i].reason && !quarantine_add(&quarantine, u->slots[i].result, u->slots[i].reason, err))
      return false;
  return quarantine_flush(&quarantine, err);
}

static bool write_rows(struct store_session *ss, struct results_unit *u, struct err *err) {
  struct text shards = {0};
  text_shard_set(&shards, UINT64_MAX);
  struct writer w = {
      .ss = ss, .what = WHAT, .decisions = u->decisions, .count = u->writes, .fence = "TRUE", .shards = &shards};
  w.no_wait = *session_skip(ss, u->met_again);
  session_begin(ss);
  ss->script.failed = shards.failed;
  bool ok = write_decisions(&w, err) && write_flush(&w, err);
  text_free(&shards);
  if (!ok && err->code == DB_GUARD) /* of a trigger: there is no guard here, and the rows are locked */
    return write_not_taken(WHAT, err);
  return ok && (!w.differs || write_not_taken(WHAT, err));
}

static bool apply_results(struct store_session *ss, struct results_unit *u, struct err *err) {
  for (size_t i = 0; i < u->count; i++)
    u->slots[i] = (struct slot){.result = u->slots[i].result, .attempt = u->slots[i].result->record.attempt};
  if (!meet_rows(ss, u, err) || !look_back(ss, u, err) || !compare_content(ss, u, err))
    return false;
  u->keeps = !(ss->locked_tables & SIDE_QUARANTINE);
  results_judge(u, ss->unknown, ss->conn->max_packet);
  return write_rows(ss, u, err) && write_quarantine(ss, u, err) && session_commit(ss, WHAT, err);
}

/* Whether the lock that was met is on the quarantine as a whole: then this is redone without it. */
static bool find_locked_quarantine(struct store_session *ss, bool *found, struct err *err) {
  unsigned before = ss->locked_tables;
  bool ok = side_tables_find(ss, SIDE_QUARANTINE & ~before, err);
  *found = ss->locked_tables != before;
  return ok;
}

static bool results_unit(struct store_session *ss, void *arg, struct err *err) {
  struct results_unit *u = arg;
  bool skips = *session_skip(ss, u->met_again), table = false;
  u->stopped = STOPPED_NOT;
  if (!side_tables_again(ss, err))
    return false;
  if (apply_results(ss, u, err))
    return true;
  if (db_error_is_refusal(err->code))
    u->stopped = STOPPED_REFUSED;
  if (err->code != DB_LOCK_WAIT)
    return false;
  session_met_lock(ss); /* redone, it does not wait again */
  struct err locked = *err;
  if (!session_rollback(ss, WHAT, err) || !find_locked_quarantine(ss, &table, err))
    return false;
  *err = locked;
  u->stopped = skips && !table ? STOPPED_LOCKED : STOPPED_NOT;
  return skips && !table;
}

/* A call of ops_settle_results. */
struct results_call {
  struct store_session *ss;
  result_decide_fn *decide;
  void *ctx;
  struct store_result *results;
  size_t count;
};

static bool is_same_task(const struct store_result *a, const struct store_result *b) {
  return !a->broken && !b->broken && strcmp(a->record.message_id, b->record.message_id) == 0;
}

/* In parts a batch is applied only as far as each task's first result: what an earlier part makes of that, or leaves of
 * it, is not known here. */
static bool is_follower(const struct results_call *call, size_t at) {
  const struct store_result *result = &call->results[at];
  for (size_t i = 0; i < at && !result->broken; i++)
    if (is_same_task(&call->results[i], result))
      return true;
  return false;
}

static bool follows_postponed(const struct results_call *call, size_t first, size_t at) {
  for (size_t i = first; i < at; i++)
    if (call->results[i].postponed && is_same_task(&call->results[i], &call->results[at]))
      return true;
  return false;
}

static void collect(const struct results_call *call, size_t first, size_t count, struct results_unit *unit) {
  bool any_postponed = false;
  for (size_t i = first; i < first + count; i++) {
    struct store_result *result = &call->results[i];
    if (result->left) {
      result->fate = RESULT_BUSY;
      result->behind = is_follower(call, i);
      result->postponed = false;
      continue;
    }
    bool met = result->fate == RESULT_BUSY && !result->early && !result->behind && !result->unkept;
    result->postponed =
        !results_fit_record(unit, result->body.len) || (any_postponed && follows_postponed(call, first, i));
    any_postponed = any_postponed || result->postponed;
    result->behind = result->postponed || (count < call->count && is_follower(call, i));
    if (result->behind) {
      result->fate = RESULT_BUSY;
      continue;
    }
    unit->bytes += result->body.len;
    unit->slots[unit->count++].result = result;
    unit->parsed += !result->broken;
    unit->met_again = unit->met_again || met;
  }
}

static enum store_status apply_at_once(void *arg, size_t first, size_t count, enum stopped *stopped, struct err *err) {
  struct results_call *call = arg;
  struct store_result *results = call->results + first;
  struct results_unit unit = {.slots = calloc(count, sizeof *unit.slots),
                              .decisions = calloc(count, sizeof *unit.decisions),
                              .decide = call->decide,
                              .ctx = call->ctx,
                              .possible = write_possible,
                              .forms = call->ss->forms};
  enum store_status status = STORE_DOWN;
  if (unit.slots && unit.decisions) {
    collect(call, first, count, &unit);
    qsort(unit.slots, unit.count, sizeof *unit.slots, by_message_id);
    status = unit.count ? session_run(call->ss, WHAT, results_unit, &unit, err) : STORE_OK;
  } else {
    err_set(err, DB_E_NO_MEMORY, WHAT ": out of memory; %s", db_error_cure(DB_E_NO_MEMORY));
  }
  for (size_t i = 0; i < count; i++)
    results[i].unknown =
        results[i].unknown || (status != STORE_OK && call->ss->unknown && results[i].fate == RESULT_APPLIED);
  for (size_t i = 0; i < count && unit.stopped && status == STORE_OK; i++) {
    results[i].fate = RESULT_BUSY;
    results[i].postponed = false;
    results[i].behind = is_follower(call, first + i);
  }
  *stopped = status == STORE_DOWN ? STOPPED_NOT : unit.stopped;
  free(unit.slots);
  free(unit.decisions);
  return status;
}

/* A result that the server refuses in every form is kept in quarantine, without its text if need be, where people see
 * why. When that takes nothing either, the trouble is the server's, not the result's: it is to be given again. */
static enum store_status apply_alone(void *arg, size_t at, size_t behind, bool *done, struct err *err) {
  enum { QUARANTINED = DECISION_FORMS, WITHOUT_TEXT };
  struct store_result *result = &((const struct results_call *)arg)->results[at];
  const struct store_result given = *result;
  char reason[256];
  enum stopped stopped = STOPPED_REFUSED;
  enum store_status status = STORE_OK;
  results_form_leave_kin(result, behind);
  snprintf(result->refusal, sizeof result->refusal, "%.255s", err->text);
  snprintf(reason, sizeof reason, "the server refuses it: %.200s", err->text);
  for (int form = given.broken ? WITHOUT_TEXT : given.form + 1; stopped == STOPPED_REFUSED && form <= WITHOUT_TEXT;) {
    while (form < QUARANTINED && !settle_form_helps(form, err->code))
      form++;
    result->form = form < QUARANTINED ? form : QUARANTINED;
    result->broken = form >= QUARANTINED && !given.broken ? reason : given.broken;
    if (form++ == WITHOUT_TEXT)
      result->body = (struct duebox_bytes){"", 0};
    status = apply_at_once(arg, at, 1, &stopped, err);
  }
  *done = stopped != STOPPED_REFUSED;
  if (*done && result->broken == reason)
    results_form_keep(result, &given);
  result->broken = *done && result->broken == reason ? "the server refuses it" : given.broken;
  result->body = given.body;
  return *done ? status : STORE_DOWN;
}

static void mark_left(void *arg, size_t first, size_t count, enum left why) {
  const struct results_call *call = arg;
  for (size_t i = first; i < first + count; i++) {
    call->results[i].fate = RESULT_BUSY;
    call->results[i].left = call->results[i].left || why == LEFT_UNTRIED;
    call->results[i].postponed = false;
    call->results[i].behind = is_follower(call, i);
  }
}

enum store_status ops_settle_results(struct store_session *ss, struct store_result *results, size_t count,
                                     result_decide_fn *decide, void *ctx, struct err *err) {
  struct results_call call = {ss, decide, ctx, results, count};
  enum store_status status = STORE_OK;
  for (size_t i = 0; i < count; i++) {
    results[i].fate = results[i].left ? RESULT_APPLIED : results[i].fate; /* none yet, and no lock was met */
    results[i].left = false;
    results[i].form = results[i].least = DECISION_WHOLE;
    results[i].postponed = results[i].measured = false;
    results[i].row_bytes = 0;
  }
  if (count)
    status = halves_run(&(struct halves){apply_at_once, apply_alone, mark_left, &call, false}, count, err);
  if (status == STORE_OK)
    results_form_note(&ss->forms, results, count);
  return status;
}
