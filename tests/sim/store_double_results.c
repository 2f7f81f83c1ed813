/* SPDX-License-Identifier: MIT
 *
 * What consumers answer: outbox/results.c, in the same steps. Rows are found without locks, locked in the order of
 * their ids, judged, written and committed, each in a round trip of its own.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "outbox/results_judge.h"
#include "outbox/settle_judge.h"
#include "store_double_ops.h"
#include "store_double_rows.h"
#include "store_double_write.h"

#define WHAT "storing results"

static int by_message_id(const void *a, const void *b) {
  const struct slot *x = a, *y = b;
  if (!x->result->broken != !y->result->broken)
    return x->result->broken ? 1 : -1;
  int found = strcmp(x->result->record.message_id, y->result->record.message_id);
  return found ? found : x->result < y->result ? -1 : x->result > y->result;
}

static const char *id_of(const struct slot *slot) { return slot->result->record.message_id; }

static bool is_of(const struct slot *slot, const struct blob *message_id) {
  return blob_is(message_id, id_of(slot), strlen(id_of(slot)));
}

/* Whether the row alone does not tell if this result is new: it is over, or waits for something else by now. */
static bool is_doubtful(const struct slot *slot) {
  const struct result_row *row = &slot->row;
  bool runs = row->state == TASK_CLAIMED || row->state == TASK_AWAITING;
  return !slot->living || slot->attempt < row->attempt || (slot->attempt == row->attempt && !runs);
}

static bool find_rows(struct store_session *ss, struct results_unit *u, bool *any, struct err *err) {
  *any = false;
  if (u->parsed == 0)
    return true;
  if (!double_begin(ss, SCRIPT_READS, 1, err))
    return false;
  for (size_t i = 0; i < u->parsed; i++) {
    const struct row *row = table_find(ss->db, id_of(&u->slots[i]), strlen(id_of(&u->slots[i])));
    u->slots[i].row.id = row ? row->id : 0;
    *any = *any || row;
  }
  return double_end(ss, err);
}

static bool read_row(const struct table *db, const struct row *row, struct slot *slot) {
  bool told = (row->state == TASK_CLAIMED || row->state == TASK_AWAITING) && !row->has_epoch;
  enum row_change change = row_untouched(row)                       ? CHANGE_NONE
                           : row->changed_us == row->created_us - 1 ? CHANGE_BEFORE_SENT
                                                                    : CHANGE_SINCE_SENT;
  if (row->text[ROW_ROUTE]->len > STORE_ROUTE_MAX)
    return false;
  (void)snprintf(slot->route, sizeof slot->route, "%s", row->text[ROW_ROUTE]->data);
  slot->row = (struct result_row){.id = row->id,
                                  .shard = row->shard,
                                  .state = row->state,
                                  .attempt = row->attempt,
                                  .failures = row->failures,
                                  .recoveries = row->recoveries,
                                  .max_attempts = row->max_attempts,
                                  .timeout_ms = row->timeout_ms,
                                  .due_us = row_due_us(row),
                                  .asked_due_us = row_first_due_us(row),
                                  .expires_us = row->expires_us == TIME_NULL ? 0 : row->expires_us,
                                  .now_us = table_clock(db),
                                  .change = told ? CHANGE_NONE : change,
                                  .answer_to = row->answer_to,
                                  .route = slot->route};
  char changed_at[TABLE_TIME_LEN + 1];
  table_time_text(row->changed_us, changed_at);
  slot->row.version = task_version(&(struct duebox_bytes){changed_at, TABLE_TIME_LEN});
  results_met(slot);
  return true;
}

static struct slot *slot_of_row(struct results_unit *u, uint64_t after) {
  struct slot *next = NULL;
  for (size_t i = 0; i < u->parsed; i++)
    if (u->slots[i].row.id > after && (!next || u->slots[i].row.id < next->row.id))
      next = &u->slots[i];
  return next;
}

static void take_row(const struct table *db, const struct row *row, bool ours, struct slot *slot) {
  if (ours) {
    slot->unreadable = !read_row(db, row, slot);
    return;
  }
  slot->busy = true;
  (void)snprintf(slot->route, sizeof slot->route, "%s", row->text[ROW_ROUTE]->data);
  slot->row.answer_to = row->answer_to;
}

/* In the order of their ids. Those that are passed over are read all the same, without a lock. */
static bool lock_rows(struct store_session *ss, struct results_unit *u, struct err *err) {
  bool skip = double_skips(ss, u->met_again), any_busy = false;
  uint64_t at = 0;
  if (!double_begin(ss, SCRIPT_READS, skip ? 3 : 2, err))
    return false;
  struct tx *tx = double_tx(ss);
  for (struct slot *slot; !skip && (slot = slot_of_row(u, at)); at = slot->row.id)
    if (!double_lock(ss, LOCK_ROW, slot->row.id, false, true, err))
      return false;
  at = 0;
  for (struct slot *slot; (slot = slot_of_row(u, at)); at = slot->row.id) {
    const struct row *row = table_row(ss->db, slot->row.id);
    if (!row || !is_of(slot, row->text[ROW_MESSAGE_ID]))
      continue;
    bool ours = !skip || table_lock(ss->db, tx, LOCK_ROW, row->id, false);
    any_busy = any_busy || !ours;
    for (struct slot *same = slot; same < u->slots + u->parsed && same->row.id == row->id; same++)
      take_row(ss->db, row, ours, same);
  }
  double_cost(ss, 0, u->parsed);
  if (!double_end(ss, err))
    return false;
  if (u->met_again && any_busy)
    double_met_lock(ss);
  return true;
}

static void take_seen(const struct table *db, struct slot *slot) {
  for (size_t i = 0; i < db->data.attempts.count; i++) {
    const struct line *line = db->data.attempts.at[i];
    if (!is_of(slot, line->message_id) || strcmp(line->kind, "result") != 0)
      continue;
    if (!slot->living && !slot->busy)
      (void)snprintf(slot->route, sizeof slot->route, "%s", line->route->data);
    if (line->attempt == slot->attempt && results_may_be_of(slot, line->task_id))
      results_seen(slot, line->outcome);
  }
}

static void take_finished(const struct table *db, struct slot *slot) {
  for (size_t i = 0; i < db->data.history.count; i++) {
    const struct row *over = db->data.history.at[i];
    if (!is_of(slot, over->text[ROW_MESSAGE_ID]) || (slot->finished && over->finished_us < slot->finished_us))
      continue;
    slot->finished = true;
    slot->finished_us = over->finished_us;
    slot->final = over->state;
    slot->final_attempt = over->attempt;
    if (!slot->living && !slot->busy)
      (void)snprintf(slot->route, sizeof slot->route, "%s", over->text[ROW_ROUTE]->data);
  }
}

/* Asks the attempts and the history about those slots whose row does not tell enough. */
static bool look_back(struct store_session *ss, struct results_unit *u, struct err *err) {
  bool any = false;
  for (size_t i = 0; i < u->parsed; i++)
    any = any || is_doubtful(&u->slots[i]);
  if (!any)
    return true;
  if (!double_begin(ss, SCRIPT_READS, 2, err) || !double_lock(ss, LOCK_ATTEMPTS, 0, true, true, err) ||
      !double_lock(ss, LOCK_HISTORY, 0, true, true, err))
    return false;
  for (size_t i = 0; i < u->parsed; i++) {
    if (!is_doubtful(&u->slots[i]))
      continue;
    take_seen(ss->db, &u->slots[i]);
    take_finished(ss->db, &u->slots[i]);
  }
  return double_end(ss, err);
}

/* Whether a row that was changed since its attempt was recorded may have the content that this attempt sent. */
static bool may_be_same(const struct slot *slot) {
  const struct result_row *row = &slot->row;
  return slot->living && row->change == CHANGE_SINCE_SENT && row->state != TASK_CLAIMED &&
         slot->attempt == row->attempt && slot->result->record.status != RESULT_PROGRESS;
}

static bool has_sent_content(const struct row *row) {
  return row && row->has_digest && row->sent_digest == row_content(row) &&
         (row->state != TASK_AWAITING || (row->published_us != TIME_NULL && row_due_us(row) <= row->published_us));
}

static bool compare_content(struct store_session *ss, struct results_unit *u, struct err *err) {
  bool any = false;
  for (size_t i = 0; i < u->parsed; i++)
    any = any || may_be_same(&u->slots[i]);
  if (!any)
    return true;
  if (!double_begin(ss, SCRIPT_READS, 1, err))
    return false;
  for (size_t i = 0; i < u->parsed; i++)
    if (may_be_same(&u->slots[i]) && has_sent_content(table_row(ss->db, u->slots[i].row.id)))
      u->slots[i].row.change = CHANGE_BEFORE_SENT;
  return double_end(ss, err);
}

/* --- writing --- */

static bool write_quarantine(struct store_session *ss, struct results_unit *u, struct err *err) {
  unsigned kept = 0;
  for (size_t i = 0; i < u->count; i++)
    kept += *u->slots[i].reason != '\0';
  if (kept == 0)
    return true;
  if (!double_begin(ss, SCRIPT_WRITES, kept, err))
    return false;
  for (size_t i = 0; i < u->count; i++) {
    const struct store_result *result = u->slots[i].result;
    if (!*u->slots[i].reason)
      continue;
    struct quarantined *record = record_new(&ss->db->data.quarantine);
    blob_put(&record->source, result->source ? result->source : "");
    blob_put(&record->origin, result->origin ? result->origin : "");
    blob_put(&record->reason, u->slots[i].reason);
    blob_set(&record->body, result->body.data ? result->body.data : "", result->body.len);
    record->seen = 1;
    record->received_us = table_clock(ss->db);
    tx_add(double_tx(ss), &ss->db->data.quarantine, record);
  }
  return double_end(ss, err);
}

/* The rows are locked; entries of other indexes, and the tables beside, may be somebody's. */
static bool write_rows(struct store_session *ss, struct results_unit *u, struct err *err) {
  static const enum lock_kind tables[] = {LOCK_ATTEMPTS, LOCK_HISTORY, LOCK_HEADS};
  bool wait = !double_skips(ss, u->met_again);
  if (u->writes == 0)
    return true;
  if (!double_begin(ss, SCRIPT_WRITES, (unsigned)u->writes, err))
    return false;
  for (size_t i = 0; i < u->writes; i++) {
    const struct decision *d = u->decisions[i];
    for (size_t k = 0; k < 3; k++)
      if (decision_tables(d) & tables[k] && !double_lock(ss, tables[k], 0, true, wait, err))
        return false;
    if (!double_lock(ss, LOCK_ENTRY, d->id, false, wait, err))
      return false;
    int code = decision_refused(ss->db, d);
    if (code)
      return double_fail(ss, code, err);
    const struct row *row = table_row(ss->db, d->id);
    if (!decision_fits(d, row, false))
      return double_fail(ss, DB_E_PROTOCOL, err);
    decision_write(double_tx(ss), row, d);
    double_cost(ss, 0, decision_statements(d));
  }
  return double_end(ss, err);
}

static bool commit(struct store_session *ss, struct err *err) {
  return double_begin(ss, SCRIPT_COMMITS, 1, err) && double_commit(ss, err);
}

static bool start(struct store_session *ss, struct err *err) {
  if (!double_begin(ss, SCRIPT_READS, 1, err))
    return false;
  (void)double_tx(ss);
  return double_end(ss, err);
}

static bool apply_results(struct store_session *ss, struct results_unit *u, struct err *err) {
  bool any = false;
  for (size_t i = 0; i < u->count; i++)
    u->slots[i] = (struct slot){.result = u->slots[i].result, .attempt = u->slots[i].result->record.attempt};
  if (!find_rows(ss, u, &any, err))
    return false;
  if (any ? !lock_rows(ss, u, err) : !start(ss, err))
    return false;
  if (!look_back(ss, u, err) || !compare_content(ss, u, err))
    return false;
  u->keeps = true;
  results_judge(u, ss->unknown, ss->db->max_packet);
  return write_rows(ss, u, err) && write_quarantine(ss, u, err) && commit(ss, err);
}

static bool results_unit(struct store_session *ss, void *arg, struct err *err) {
  struct results_unit *u = arg;
  bool skips = double_skips(ss, u->met_again);
  u->stopped = STOPPED_NOT;
  if (apply_results(ss, u, err))
    return true;
  if (db_error_is_refusal(err->code))
    u->stopped = STOPPED_REFUSED;
  if (err->code != DB_LOCK_WAIT)
    return false;
  double_met_lock(ss); /* redone, it does not wait again */
  u->stopped = skips ? STOPPED_LOCKED : STOPPED_NOT;
  return skips && double_rollback(ss, err);
}

/* --- the call --- */

struct results_call {
  struct store_session *ss;
  result_decide_fn *decide;
  void *ctx;
  struct store_result *results;
  size_t count;
};

/* In parts a batch is applied only as far as each task's first result: what an earlier part makes of that, or leaves of
 * it, is not known here. */
static bool is_follower(const struct results_call *call, size_t at) {
  const struct store_result *result = &call->results[at];
  for (size_t i = 0; i < at && !result->broken; i++)
    if (!call->results[i].broken && strcmp(call->results[i].record.message_id, result->record.message_id) == 0)
      return true;
  return false;
}

static void collect(const struct results_call *call, size_t first, size_t count, struct results_unit *unit) {
  for (size_t i = first; i < first + count; i++) {
    struct store_result *result = &call->results[i];
    if (result->left) {
      result->fate = RESULT_BUSY;
      result->behind = is_follower(call, i);
      continue;
    }
    bool met = result->fate == RESULT_BUSY && !result->early && !result->behind;
    result->behind = count < call->count && is_follower(call, i);
    if (result->behind) {
      result->fate = RESULT_BUSY;
      continue;
    }
    unit->slots[unit->count++].result = result;
    unit->parsed += !result->broken;
    unit->met_again = unit->met_again || met;
  }
}

static enum store_status apply_at_once(void *arg, size_t first, size_t count, enum stopped *stopped, struct err *err) {
  const struct results_call *call = arg;
  struct store_result *results = call->results + first;
  struct results_unit unit = {.slots = calloc(count, sizeof *unit.slots),
                              .decisions = calloc(count, sizeof *unit.decisions),
                              .decide = call->decide,
                              .ctx = call->ctx,
                              .possible = decision_possible,
                              .forms = call->ss->forms};
  if (!unit.slots || !unit.decisions)
    world_fail("no memory for results");
  collect(call, first, count, &unit);
  qsort(unit.slots, unit.count, sizeof *unit.slots, by_message_id);
  enum store_status status = unit.count ? double_run(call->ss, WHAT, results_unit, &unit, err) : STORE_OK;
  for (size_t i = 0; i < count; i++)
    results[i].unknown =
        results[i].unknown || (status != STORE_OK && call->ss->unknown && results[i].fate == RESULT_APPLIED);
  for (size_t i = 0; i < count && unit.stopped && status == STORE_OK; i++) {
    results[i].fate = RESULT_BUSY;
    results[i].behind = is_follower(call, first + i);
  }
  *stopped = status == STORE_DOWN ? STOPPED_NOT : unit.stopped;
  free(unit.slots);
  free(unit.decisions);
  return status;
}

/* A result that the server refuses in every form is kept in quarantine, where people see why. */
static enum store_status apply_alone(void *arg, size_t at, size_t behind, bool *done, struct err *err) {
  struct store_result *result = &((const struct results_call *)arg)->results[at];
  const struct store_result given = *result;
  char reason[256];
  enum stopped stopped = STOPPED_REFUSED;
  enum store_status status = STORE_OK;
  results_form_leave_kin(result, behind);
  (void)snprintf(result->refusal, sizeof result->refusal, "%.255s", err->text);
  (void)snprintf(reason, sizeof reason, "the server refuses it: %.200s", err->text);
  int code = err->code;
  while (stopped == STOPPED_REFUSED && !result->broken) {
    do
      result->form++;
    while (!settle_form_helps(result->form, code));
    if (result->form == DECISION_FORMS)
      result->broken = reason;
    struct err local = {0};
    status = apply_at_once(arg, at, 1, &stopped, &local);
    if (status != STORE_OK && stopped != STOPPED_REFUSED)
      *err = local;
    code = local.code;
  }
  *done = stopped != STOPPED_REFUSED;
  if (result->broken == reason)
    results_form_keep(result, &given);
  if (result->broken == reason)
    result->broken = "the server refuses it";
  if (!*done)
    result->fate = RESULT_BROKEN; /* not even there */
  return *done ? status : STORE_OK;
}

static void mark_left(void *arg, size_t first, size_t count, enum left why) {
  const struct results_call *call = arg;
  for (size_t i = first; i < first + count; i++) {
    call->results[i].fate = RESULT_BUSY;
    call->results[i].left = call->results[i].left || why == LEFT_UNTRIED;
    call->results[i].behind = is_follower(call, i);
  }
}

enum store_status double_settle_results(struct store_session *ss, struct store_result *results, size_t count,
                                        result_decide_fn *decide, void *ctx, struct err *err) {
  struct results_call call = {ss, decide, ctx, results, count};
  struct err local = {0};
  for (size_t i = 0; i < count; i++) {
    results[i].fate = results[i].left ? RESULT_APPLIED : results[i].fate; /* none yet, and no lock was met */
    results[i].left = false;
    results[i].form = results[i].least = DECISION_WHOLE;
  }
  enum store_status status = STORE_OK;
  if (count)
    status =
        halves_run(&(struct halves){apply_at_once, apply_alone, mark_left, &call, false}, count, err ? err : &local);
  if (status == STORE_OK)
    results_form_note(&ss->forms, results, count);
  return status;
}
