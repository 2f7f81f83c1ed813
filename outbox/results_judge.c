/* SPDX-License-Identifier: MIT */
#include "outbox/results_judge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_row_id(const void *a, const void *b) {
  const struct decision *x = *(struct decision *const *)a, *y = *(struct decision *const *)b;
  return x->id < y->id ? -1 : x->id > y->id;
}

void results_met(struct slot *slot) {
  slot->living = true;
  if (slot->attempt == 0)
    slot->attempt = slot->row.attempt ? slot->row.attempt : 1;
}

/* Whether a record agrees with what followed from another one of the same attempt, or says nothing about it. */
static bool agrees(enum result_status status, const char *outcome) {
  return status == RESULT_PROGRESS || strcmp(outcome, "changed") == 0 ||
         (status == RESULT_DONE) == (strcmp(outcome, task_event_text(EVENT_DONE)) == 0);
}

/* Whether that is the very thing that it says. */
static bool says(enum result_status status, const char *outcome) {
  static const enum task_event events[] = {
      [RESULT_DONE] = EVENT_DONE, [RESULT_RETRY] = EVENT_RETRY, [RESULT_FAIL] = EVENT_DEAD};
  return status == RESULT_PROGRESS || strcmp(outcome, task_event_text(events[status])) == 0;
}

bool results_may_be_of(const struct slot *slot, uint64_t id) { return !slot->living || id == slot->row.id; }

void results_seen(struct slot *slot, const char *outcome) {
  enum result_status status = slot->result->record.status;
  if (!slot->seen || strcmp(outcome, task_event_text(EVENT_DONE)) == 0)
    slot->same = says(status, outcome);
  slot->seen = true;
  slot->agreed = slot->agreed || agrees(status, outcome);
}

/* What names no attempt is about the current one. Where the next one may have left and is not recorded yet, that is the
 * current one; but a success counts at once, unless the attempt before it has had its result. */
static void name_attempt(const struct results_unit *u, struct slot *slot) {
  struct result_record *record = &slot->result->record;
  bool perhaps_next = record->attempt == 0 && slot->row.attempt > 0 && (record->status != RESULT_DONE || slot->seen);
  if (record->attempt == 0)
    record->attempt = slot->attempt;
  if (!perhaps_next)
    return;
  record->attempt++;
  if (u->decide(u->ctx, &slot->row, record, &slot->decision) == RESULT_ORPHAN)
    record->attempt--;
  else
    slot->seen = false;
}

/* Too large for one statement: escaped twice, a text may grow eightfold. */
static bool is_too_large(const struct result_record *record, size_t max_packet) {
  size_t stack = record->error_stack ? strlen(record->error_stack) : 0;
  return record->result_json_len + record->checkpoint_len + stack > max_packet / 8;
}

/* This attempt has had its result. A second one changes nothing; where it says the opposite, people will ask which of
 * the two is true. */
static enum result_fate judge_seen(struct slot *slot) {
  const struct result_record *record = &slot->result->record;
  slot->result->differs = !slot->same;
  if (!slot->agreed)
    snprintf(slot->reason, sizeof slot->reason, "%s: attempt %u has had its result, and this one says the opposite: %s",
             record->message_id, record->attempt, result_status_text(record->status));
  return RESULT_DUPLICATE;
}

/* The task has ended without this result. It is of interest where the end would have been another with it: a success
 * of any attempt, where there was none, and a failure of the attempt that was taken for a success. */
static enum result_fate judge_late(struct slot *slot) {
  const struct result_record *record = &slot->result->record;
  bool opposite = slot->final == TASK_DONE
                      ? record->status != RESULT_DONE && (!record->attempt || record->attempt >= slot->final_attempt)
                      : record->status == RESULT_DONE;
  if (opposite && record->status != RESULT_PROGRESS)
    snprintf(slot->reason, sizeof slot->reason, "%s: the task has ended as %s, and this says the opposite: %s",
             record->message_id, task_state_text(slot->final), result_status_text(record->status));
  return RESULT_LATE;
}

static enum result_fate judge_misrouted(struct slot *slot) {
  snprintf(slot->reason, sizeof slot->reason,
           "route %s takes no results from %s: its reply_to, with result: expected, must be that topic or queue, or "
           "`routes` of that entry of results must list it",
           slot->route, slot->result->source);
  return RESULT_MISROUTED;
}

/* What has ended is only spoken about on the road of its route, and only what came on it waits for a locked row, or
 * came before it is recorded where the message named: duebox itself may hold the row to do so. What says again what was
 * taken is no news on any road: where the message of a task that has ended named is kept nowhere, and a reload may have
 * changed the route since. */
static bool is_misrouted(const struct results_unit *u, const struct slot *slot) {
  struct result_record *record = &slot->result->record;
  struct result_row row = {.attempt = record->attempt, .route = slot->route, .answer_to = slot->row.answer_to};
  struct decision unused = {0};
  row.state = slot->finished ? slot->final : TASK_DONE;
  bool settled = slot->busy ? slot->row.answer_to || record->cannot_wait : slot->seen || slot->finished;
  return record->entry && !(slot->seen && slot->agreed) && settled &&
         u->decide(u->ctx, &row, record, &unused) == RESULT_MISROUTED;
}

static enum result_fate judge_living(struct results_unit *u, struct slot *slot) {
  struct decision *d = &slot->decision;
  const struct result_row *row = &slot->row;
  name_attempt(u, slot);
  if (slot->seen)
    return judge_seen(slot);
  enum result_fate fate = u->decide(u->ctx, row, &slot->result->record, d);
  if (fate == RESULT_MISROUTED)
    return judge_misrouted(slot);
  slot->result->early = fate == RESULT_BUSY;
  bool untold = fate == RESULT_BUSY && slot->result->waited;
  slot->result->unsent =
      fate == RESULT_ORPHAN || (untold && (row->change != CHANGE_SINCE_SENT || slot->result->record.too_soon));
  const struct result_record *record = &slot->result->record;
  if (slot->result->unsent)
    snprintf(slot->reason, sizeof slot->reason, "attempt %u %s; the row counts %u", record->attempt,
             record->too_soon                 ? "was not due when this came"
             : record->attempt > row->attempt ? "was never handed out"
                                              : "is still out",
             row->attempt);
  else if (untold)
    snprintf(slot->reason, sizeof slot->reason, "the task was changed, and nobody says what attempt %u sent of it",
             slot->result->record.attempt);
  if (untold)
    return RESULT_ORPHAN;
  /* Its attempt has failed and waits for the next one, without a word of a consumer. */
  slot->result->differs = fate == RESULT_DUPLICATE && slot->result->record.status == RESULT_FAIL;
  if (fate != RESULT_APPLIED)
    return fate;
  d->id = row->id;
  d->message_id = (struct duebox_bytes){slot->result->record.message_id, strlen(slot->result->record.message_id)};
  d->shard = row->shard;
  d->from = row->state;
  d->attempt_from = row->attempt;
  d->record = &slot->result->record;
  d->log_attempt = d->event != EVENT_PROGRESS; /* what tells a duplicate */
  /* It came before its publishing was recorded, some milliseconds at most; nobody will write that time any more. */
  uint32_t going_out = row->state == TASK_SCHEDULED ? row->attempt + 1 : row->state == TASK_CLAIMED ? row->attempt : 0;
  if (d->record->attempt == going_out && d->event != EVENT_PROGRESS)
    d->published_us = row->now_us;
  if (!u->possible(d))
    return RESULT_STALE;
  slot->result->left = !results_form(u->forms, slot->result, row->route, d->event, &d->form);
  if (slot->result->left)
    return RESULT_BUSY;
  u->decisions[u->writes++] = d;
  return RESULT_APPLIED;
}

static enum result_fate judge(struct results_unit *u, struct slot *slot, size_t max_packet) {
  const char *broken = slot->result->broken;
  if (!broken && is_too_large(&slot->result->record, max_packet))
    broken = "too large to store; raise max_allowed_packet on the server";
  else if (!broken && slot->unreadable)
    broken = "the task's row has a value that the table does not allow";
  snprintf(slot->reason, sizeof slot->reason, "%s", broken ? broken : "");
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
  snprintf(slot->reason, sizeof slot->reason, "no task has this message id");
  return RESULT_ORPHAN;
}

static bool is_same_task(const struct slot *a, const struct slot *b) {
  return !a->result->broken && !b->result->broken &&
         strcmp(a->result->record.message_id, b->result->record.message_id) == 0;
}

/* Progress upon progress: the later one is written, for both. */
static void join_progress(struct results_unit *u, struct slot *earlier, struct slot *later) {
  struct decision *d = &later->decision;
  const struct result_record *said = earlier->decision.record;
  later->joined = *d->record;
  d->record = &later->joined;
  if (later->joined.progress < 0)
    later->joined.progress = said->progress;
  if (!later->joined.checkpoint) {
    later->joined.checkpoint = said->checkpoint;
    later->joined.checkpoint_len = said->checkpoint_len;
  }
  if (d->delay_us < earlier->decision.delay_us)
    d->delay_us = earlier->decision.delay_us;
  u->decisions[--u->writes - 1] = d;
}

/* What was read of a task stays true while its results change nothing that the rules ask for: progress does not. */
static enum result_fate judge_in_turn(struct results_unit *u, struct slot *slot, size_t max_packet) {
  slot->result->postponed = slot->postponed;
  if (slot->postponed) {
    slot->result->behind = slot->closed = true;
    return RESULT_BUSY;
  }
  struct slot *before = slot > u->slots && is_same_task(slot - 1, slot) ? slot - 1 : NULL;
  enum result_fate fate = before && before->closed ? RESULT_BUSY : judge(u, slot, max_packet);
  bool progress = fate == RESULT_APPLIED && slot->decision.event == EVENT_PROGRESS && !slot->decision.changed;
  slot->progress = before ? before->progress : NULL;
  slot->result->behind = before && before->closed;
  slot->closed = fate == RESULT_BUSY || (fate == RESULT_APPLIED && !progress);
  if (fate == RESULT_APPLIED && !progress && slot->progress) { /* two writes to one row */
    u->writes--;
    slot->result->behind = true;
    return RESULT_BUSY;
  }
  if (progress && slot->progress)
    join_progress(u, slot->progress, slot);
  if (progress)
    slot->progress = slot;
  return fate;
}

/* The quarantine is somebody else's for now. What counts does so without being kept there, and so does what its sender
 * learns; all else is to be given again, by the reason that it has now: it may look another way when a later attempt is
 * out. */
static void do_without_quarantine(struct slot *slot) {
  struct store_result *result = slot->result;
  result->unkept = *slot->reason && result->fate != RESULT_APPLIED && !result->replied;
  if (result->unkept) {
    result->fate = RESULT_BUSY;
    result->contradicts = false;
    snprintf(result->refusal, sizeof result->refusal, "%s", slot->reason);
  }
  slot->reason[0] = '\0';
}

void results_judge(struct results_unit *u, bool unknown, size_t max_packet) {
  u->writes = 0;
  for (size_t i = 0; i < u->count; i++) {
    struct slot *slot = &u->slots[i];
    struct store_result *result = slot->result;
    result->unsent = result->unkept = result->differs = result->left = false;
    result->early = result->early && !slot->postponed;
    bool perhaps = result->unknown || (unknown && result->fate == RESULT_APPLIED);
    enum result_fate fate = judge_in_turn(u, slot, max_packet);
    bool happened = perhaps && (fate == RESULT_DUPLICATE || fate == RESULT_LATE || fate == RESULT_ORPHAN);
    result->unknown = perhaps && fate == RESULT_BUSY;
    /* The commit of a try before got no answer; that the row has had this result says that it happened, and what came
     * of it is known from then. */
    if (happened || result->unknown) {
      slot->reason[0] = '\0';
      result->fate = happened ? RESULT_APPLIED : fate;
      continue;
    }
    result->early = result->early && fate == RESULT_BUSY;
    result->fate = fate;
    if (fate == RESULT_APPLIED) /* its attempts may be used up, or its row be due again since it was changed */
      result->differs = !says(result->record.status, task_event_text(slot->decision.event));
    result->event = slot->decision.event;
    result->changed = fate == RESULT_APPLIED && slot->decision.changed;
    result->capped = fate == RESULT_APPLIED && slot->decision.capped;
    result->extended = fate == RESULT_APPLIED && result->event == EVENT_PROGRESS && slot->row.state == TASK_AWAITING;
    result->contradicts = (fate == RESULT_DUPLICATE || fate == RESULT_LATE) && *slot->reason;
    if (fate == RESULT_APPLIED && result->record.flaw)
      snprintf(slot->reason, sizeof slot->reason, "%s: %s", result->record.message_id, result->record.flaw);
    else if (result->replayed || (result->replied && !result->contradicts))
      slot->reason[0] = '\0';
    if (!u->keeps)
      do_without_quarantine(slot);
    result->cancelled = !slot->living && slot->finished && slot->final == TASK_CANCELLED;
    snprintf(result->route, sizeof result->route, "%s", slot->route);
  }
  qsort(u->decisions, u->writes, sizeof *u->decisions, by_row_id);
}
