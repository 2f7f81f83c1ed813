/* SPDX-License-Identifier: MIT
 *
 * What consumers answer: outbox/results.c, in the same steps. Rows are found without locks, locked in the order of
 * their ids, judged, written and committed, each in a round trip of its own.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "outbox/halves.h"
#include "store_double_ops.h"
#include "store_double_rows.h"
#include "store_double_write.h"

#define WHAT "storing results"

struct slot {
  struct store_result *result;
  struct result_row row;
  char route[STORE_ROUTE_MAX + 1];
  char reason[256]; /* why it is quarantined */
  uint64_t id;      /* of the row that was found; 0 = none */
  bool living;      /* row is what it met, locked */
  bool busy;        /* there is a row, and another transaction holds it */
  bool unreadable;  /* what the database has about the task is nothing that the schema allows */
  bool seen;        /* this attempt's result was applied before ... */
  bool agreed;      /* ... and said as much */
  bool finished;    /* the task is in the history, in state `final`, with that many attempts */
  int64_t finished_us;
  enum task_state final;
  uint32_t final_attempt;
  struct decision decision;
};

struct results_unit {
  struct slot *slots; /* those with a parsed record first, by message id; then the broken ones */
  size_t parsed, count;
  struct decision **decisions; /* those to write, by id */
  size_t writes;
  bool met_again;
  enum stopped stopped;
  result_decide_fn *decide;
  void *ctx;
};

static int by_message_id(const void *a, const void *b) {
  const struct slot *x = a, *y = b;
  if (!x->result->broken != !y->result->broken)
    return x->result->broken ? 1 : -1;
  int found = strcmp(x->result->record.message_id, y->result->record.message_id);
  return found ? found : x->result < y->result ? -1 : x->result > y->result;
}

static int by_row_id(const void *a, const void *b) {
  const struct decision *x = *(struct decision *const *)a, *y = *(struct decision *const *)b;
  return x->id < y->id ? -1 : x->id > y->id;
}

static const char *id_of(const struct slot *slot) { return slot->result->record.message_id; }

static bool is_of(const struct slot *slot, const struct blob *message_id) {
  return blob_is(message_id, id_of(slot), strlen(id_of(slot)));
}

/* Whether the row alone does not tell if this result is new: it is over, or waits for something else by now. */
static bool is_doubtful(const struct slot *slot) {
  const struct result_row *row = &slot->row;
  bool runs = row->state == TASK_CLAIMED || row->state == TASK_AWAITING;
  uint32_t attempt = slot->result->record.attempt;
  return !slot->living || attempt < row->attempt || (attempt == row->attempt && !runs);
}

static bool find_rows(struct store_session *ss, struct results_unit *u, bool *any, struct err *err) {
  *any = false;
  if (u->parsed == 0)
    return true;
  if (!double_begin(ss, SCRIPT_READS, 1, err))
    return false;
  for (size_t i = 0; i < u->parsed; i++) {
    const struct row *row = table_find(ss->db, id_of(&u->slots[i]), strlen(id_of(&u->slots[i])));
    u->slots[i].id = row ? row->id : 0;
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
  slot->living = true;
  if (slot->result->record.attempt == 0) /* the current one; a first attempt may not be recorded yet */
    slot->result->record.attempt = row->attempt ? row->attempt : 1;
  return true;
}

static struct slot *slot_of_row(struct results_unit *u, uint64_t after) {
  struct slot *next = NULL;
  for (size_t i = 0; i < u->parsed; i++)
    if (u->slots[i].id > after && (!next || u->slots[i].id < next->id))
      next = &u->slots[i];
  return next;
}

/* In the order of their ids. Those that are passed over are read all the same, without a lock. */
static bool lock_rows(struct store_session *ss, struct results_unit *u, struct err *err) {
  bool skip = double_skips(ss, u->met_again), any_busy = false;
  uint64_t at = 0;
  if (!double_begin(ss, SCRIPT_READS, skip ? 3 : 2, err))
    return false;
  struct tx *tx = double_tx(ss);
  for (struct slot *slot; !skip && (slot = slot_of_row(u, at)); at = slot->id)
    if (!double_lock(ss, LOCK_ROW, slot->id, false, true, err))
      return false;
  at = 0;
  for (struct slot *slot; (slot = slot_of_row(u, at)); at = slot->id) {
    const struct row *row = table_row(ss->db, slot->id);
    if (!row || !is_of(slot, row->text[ROW_MESSAGE_ID]))
      continue;
    if (!skip || table_lock(ss->db, tx, LOCK_ROW, row->id, false)) {
      slot->unreadable = !read_row(ss->db, row, slot);
      continue;
    }
    slot->busy = any_busy = true;
    (void)snprintf(slot->route, sizeof slot->route, "%s", row->text[ROW_ROUTE]->data);
    slot->row.answer_to = row->answer_to;
  }
  if (!double_end(ss, err))
    return false;
  if (u->met_again && any_busy)
    double_met_lock(ss);
  return true;
}

/* Whether a record agrees with what followed from another one of the same attempt, or says nothing about it. */
static bool agrees(enum result_status status, const char *outcome) {
  return status == RESULT_PROGRESS || strcmp(outcome, "changed") == 0 ||
         (status == RESULT_DONE) == (strcmp(outcome, task_event_text(EVENT_DONE)) == 0);
}

static void take_seen(const struct table *db, struct slot *slot) {
  for (size_t i = 0; i < db->data.attempts.count; i++) {
    const struct line *line = db->data.attempts.at[i];
    if (!is_of(slot, line->message_id) || strcmp(line->kind, "result") != 0)
      continue;
    (void)snprintf(slot->route, sizeof slot->route, "%s", line->route->data);
    if (line->attempt != slot->result->record.attempt)
      continue;
    slot->seen = true;
    slot->agreed = slot->agreed || agrees(slot->result->record.status, line->outcome);
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
    if (!slot->living)
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
         slot->result->record.attempt == row->attempt && slot->result->record.status != RESULT_PROGRESS;
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
    if (may_be_same(&u->slots[i]) && has_sent_content(table_row(ss->db, u->slots[i].id)))
      u->slots[i].row.change = CHANGE_BEFORE_SENT;
  return double_end(ss, err);
}

/* --- judging --- */

static bool is_too_large(const struct store_session *ss, const struct result_record *record) {
  size_t stack = record->error_stack ? strlen(record->error_stack) : 0;
  return record->result_json_len + record->checkpoint_len + stack > ss->db->max_packet / 8;
}

static enum result_fate judge_seen(struct slot *slot) {
  const struct result_record *record = &slot->result->record;
  if (!slot->agreed)
    (void)snprintf(slot->reason, sizeof slot->reason,
                   "%s: attempt %u has had its result, and this one says the opposite: %s", record->message_id,
                   record->attempt, result_status_text(record->status));
  return RESULT_DUPLICATE;
}

static enum result_fate judge_late(struct slot *slot) {
  const struct result_record *record = &slot->result->record;
  bool opposite = slot->final == TASK_DONE
                      ? record->status != RESULT_DONE && (!record->attempt || record->attempt >= slot->final_attempt)
                      : record->status == RESULT_DONE;
  if (opposite && record->status != RESULT_PROGRESS)
    (void)snprintf(slot->reason, sizeof slot->reason, "%s: the task has ended as %s, and this says the opposite: %s",
                   record->message_id, task_state_text(slot->final), result_status_text(record->status));
  return RESULT_LATE;
}

static enum result_fate judge_misrouted(struct slot *slot) {
  (void)snprintf(slot->reason, sizeof slot->reason, "route %s takes no results from %s", slot->route,
                 slot->result->source);
  return RESULT_MISROUTED;
}

static bool is_misrouted(const struct results_unit *u, const struct slot *slot) {
  struct result_record *record = &slot->result->record;
  struct result_row row = {.attempt = record->attempt, .route = slot->route, .answer_to = slot->row.answer_to};
  struct decision unused = {0};
  row.state = slot->finished ? slot->final : TASK_DONE;
  return record->entry && (slot->busy || slot->seen || slot->finished) &&
         u->decide(u->ctx, &row, record, &unused) == RESULT_MISROUTED;
}

static void fill_decision(struct slot *slot) {
  struct decision *d = &slot->decision;
  const struct result_row *row = &slot->row;
  d->id = row->id;
  d->message_id = (struct duebox_bytes){id_of(slot), strlen(id_of(slot))};
  d->shard = row->shard;
  d->from = row->state;
  d->attempt_from = row->attempt;
  d->record = &slot->result->record;
  d->form = slot->result->form;
  d->log_attempt = d->event != EVENT_PROGRESS; /* what tells a duplicate */
  uint32_t going_out = row->state == TASK_SCHEDULED ? row->attempt + 1 : row->state == TASK_CLAIMED ? row->attempt : 0;
  if (d->record->attempt == going_out && d->event != EVENT_PROGRESS)
    d->published_us = row->now_us;
}

static enum result_fate judge_living(struct results_unit *u, struct slot *slot) {
  const struct result_row *row = &slot->row;
  uint32_t attempt = slot->result->record.attempt;
  if (slot->seen)
    return judge_seen(slot);
  enum result_fate fate = u->decide(u->ctx, row, &slot->result->record, &slot->decision);
  if (fate == RESULT_MISROUTED)
    return judge_misrouted(slot);
  slot->result->early = fate == RESULT_BUSY;
  bool untold = fate == RESULT_BUSY && slot->result->waited;
  slot->result->unsent = fate == RESULT_ORPHAN || (untold && row->change != CHANGE_SINCE_SENT);
  if (slot->result->unsent)
    (void)snprintf(slot->reason, sizeof slot->reason, "attempt %u %s; the row counts %u", attempt,
                   attempt > row->attempt ? "was never handed out" : "is still out", row->attempt);
  else if (untold)
    (void)snprintf(slot->reason, sizeof slot->reason,
                   "the task was changed, and nobody says what attempt %u sent of it", attempt);
  if (untold)
    return RESULT_ORPHAN;
  if (fate != RESULT_APPLIED)
    return fate;
  fill_decision(slot);
  if (!decision_possible(&slot->decision))
    return RESULT_STALE;
  u->decisions[u->writes++] = &slot->decision;
  return RESULT_APPLIED;
}

static enum result_fate judge(const struct store_session *ss, struct results_unit *u, struct slot *slot) {
  const char *broken = slot->result->broken;
  if (!broken && is_too_large(ss, &slot->result->record))
    broken = "too large to store; raise max_allowed_packet on the server";
  else if (!broken && slot->unreadable)
    broken = "the task's row has a value that the table does not allow";
  (void)snprintf(slot->reason, sizeof slot->reason, "%s", broken ? broken : "");
  if (broken)
    return RESULT_BROKEN;
  if (is_misrouted(u, slot))
    return judge_misrouted(slot);
  if (slot->living)
    return judge_living(u, slot);
  if (slot->busy)
    return RESULT_BUSY;
  if (slot->seen)
    return judge_seen(slot);
  if (slot->finished)
    return judge_late(slot);
  (void)snprintf(slot->reason, sizeof slot->reason, "no task has this message id");
  return RESULT_ORPHAN;
}

static void judge_one(const struct store_session *ss, struct results_unit *u, struct slot *slot) {
  struct store_result *result = slot->result;
  result->unsent = false;
  bool perhaps = result->unknown || (ss->unknown && result->fate == RESULT_APPLIED);
  enum result_fate fate = judge(ss, u, slot);
  bool happened = perhaps && (fate == RESULT_DUPLICATE || fate == RESULT_LATE || fate == RESULT_ORPHAN);
  result->unknown = perhaps && fate == RESULT_BUSY;
  if (happened || result->unknown) {
    slot->reason[0] = '\0';
    result->fate = happened ? RESULT_APPLIED : fate;
    return;
  }
  result->early = result->early && fate == RESULT_BUSY;
  result->fate = fate;
  result->event = slot->decision.event;
  result->changed = fate == RESULT_APPLIED && slot->decision.changed;
  result->capped = fate == RESULT_APPLIED && slot->decision.capped;
  result->extended = fate == RESULT_APPLIED && result->event == EVENT_PROGRESS && slot->row.state == TASK_AWAITING;
  result->contradicts = (fate == RESULT_DUPLICATE || fate == RESULT_LATE) && *slot->reason;
  if (fate == RESULT_APPLIED && result->record.flaw)
    (void)snprintf(slot->reason, sizeof slot->reason, "%s: %s", result->record.message_id, result->record.flaw);
  else if (result->replayed || (result->replied && !result->contradicts))
    slot->reason[0] = '\0';
  result->cancelled = !slot->living && slot->finished && slot->final == TASK_CANCELLED;
  memcpy(result->route, slot->route, sizeof result->route);
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
    u->slots[i] = (struct slot){.result = u->slots[i].result};
  if (!find_rows(ss, u, &any, err))
    return false;
  if (any ? !lock_rows(ss, u, err) : !start(ss, err))
    return false;
  if (!look_back(ss, u, err) || !compare_content(ss, u, err))
    return false;
  u->writes = 0;
  for (size_t i = 0; i < u->count; i++)
    judge_one(ss, u, &u->slots[i]);
  qsort(u->decisions, u->writes, sizeof *u->decisions, by_row_id);
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
};

static enum store_status apply_at_once(void *arg, size_t first, size_t count, enum stopped *stopped, struct err *err) {
  const struct results_call *call = arg;
  struct store_result *results = call->results + first;
  struct results_unit unit = {.slots = calloc(count, sizeof *unit.slots),
                              .decisions = calloc(count, sizeof *unit.decisions),
                              .count = count,
                              .decide = call->decide,
                              .ctx = call->ctx};
  if (!unit.slots || !unit.decisions)
    world_fail("no memory for results");
  for (size_t i = 0; i < count; i++) {
    unit.slots[i].result = &results[i];
    unit.parsed += !results[i].broken;
    unit.met_again = unit.met_again || (results[i].fate == RESULT_BUSY && !results[i].early);
  }
  qsort(unit.slots, count, sizeof *unit.slots, by_message_id);
  enum store_status status = double_run(call->ss, WHAT, results_unit, &unit, err);
  for (size_t i = 0; i < count; i++)
    results[i].unknown =
        results[i].unknown || (status != STORE_OK && call->ss->unknown && results[i].fate == RESULT_APPLIED);
  for (size_t i = 0; i < count && unit.stopped && status == STORE_OK; i++)
    results[i].fate = RESULT_BUSY;
  *stopped = status == STORE_DOWN ? STOPPED_NOT : unit.stopped;
  free(unit.slots);
  free(unit.decisions);
  return status;
}

/* A result that the server refuses in every form is kept in quarantine, where people see why. */
static enum store_status apply_alone(void *arg, size_t at, bool *done, struct err *err) {
  struct store_result *result = &((const struct results_call *)arg)->results[at];
  char reason[256];
  enum stopped stopped = STOPPED_REFUSED;
  enum store_status status = STORE_OK;
  (void)snprintf(result->refusal, sizeof result->refusal, "%.255s", err->text);
  (void)snprintf(reason, sizeof reason, "the server refuses it: %.200s", err->text);
  while (stopped == STOPPED_REFUSED && !result->broken) {
    if (++result->form == DECISION_FORMS)
      result->broken = reason;
    struct err local = {0};
    status = apply_at_once(arg, at, 1, &stopped, &local);
    if (status != STORE_OK && stopped != STOPPED_REFUSED)
      *err = local;
  }
  *done = stopped != STOPPED_REFUSED;
  if (result->broken == reason)
    result->broken = "the server refuses it";
  if (!*done)
    result->fate = RESULT_BROKEN; /* not even there */
  return *done ? status : STORE_OK;
}

static void mark_left(void *arg, size_t first, size_t count, bool refused) {
  const struct results_call *call = arg;
  (void)refused;
  for (size_t i = first; i < first + count; i++)
    call->results[i].fate = RESULT_BUSY;
}

enum store_status double_settle_results(struct store_session *ss, struct store_result *results, size_t count,
                                        result_decide_fn *decide, void *ctx, struct err *err) {
  struct results_call call = {ss, decide, ctx, results};
  struct err local = {0};
  for (size_t i = 0; i < count; i++)
    results[i].form = DECISION_WHOLE;
  return count ? halves_run(&(struct halves){apply_at_once, apply_alone, mark_left, &call}, count, err ? err : &local)
               : STORE_OK;
}
