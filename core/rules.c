/* SPDX-License-Identifier: MIT */
#include "core/rules.h"

#include <string.h>

#include "core/callback_id.h"

static const int64_t DAY_MS = 24 * 3600 * 1000;

enum { DEFER_MIN_US = 250 * 1000, DEFER_MAX_US = 60 * 1000 * 1000 };

static const char *alert_route(const struct rules_context *context, const struct route_config *route) {
  const struct route_config *alert = context->config->dead_alert;
  /* A dead alert raises no alert: it would feed itself. */
  return alert && (!route || strcmp(alert->name, route->name) != 0) ? alert->name : NULL;
}

static void start_decision(const struct rules_task *task, enum task_event event, struct decision *out) {
  *out = (struct decision){
      .id = task->id,
      .message_id = task->message_id,
      .shard = task->shard,
      .from = task->state,
      .attempt_from = task->attempt_row,
      .event = event,
      .attempt = task->attempt_now,
      .failures = task->failures,
      .recoveries = task->recoveries,
  };
}

static void to_dead(const struct rules_context *context, const struct route_config *route, struct decision *out) {
  out->event = EVENT_DEAD;
  out->keep_us = context->config->engine.dead_retention_ms * 1000;
  out->alert_route = alert_route(context, route);
  out->log_attempt = true;
}

static void to_done(const struct rules_context *context, const struct route_config *route, struct decision *out) {
  out->event = EVENT_DONE;
  out->keep_us = 1000 * (route ? route->history_ms : context->config->engine.dead_retention_ms);
  out->log_attempt = out->log_attempt || (route && route->every_attempt);
}

static bool given_up(const struct rules_context *context, const struct route_config *route,
                     const struct rules_task *task) {
  return route && route->give_up_ms > 0 && context->now_us - task->asked_due_us > route->give_up_ms * 1000;
}

/* splitmix64: one random number for a whole batch, and each of its tasks has its own jitter. */
static uint64_t own_random(uint64_t random, uint64_t id) {
  uint64_t z = random + id * UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

/* One more failure: another attempt by the policy, or dead, or expired when the next attempt would come too late. */
static void fail(const struct rules_context *context, const struct route_config *route, const struct rules_task *task,
                 int64_t wish_ms, int64_t least_ms, struct decision *out) {
  /* A route that this daemon does not know says nothing about budgets: the task goes back, to be held where people see
   * it, or run by a daemon that knows. */
  static const struct retry_policy unknown = {.backoff_ms = 1000, .multiplier = 1, .max_ms = 1000};
  const struct retry_policy *policy = route ? &route->retry : &unknown;
  out->failures = task->failures + 1;
  out->log_attempt = true;
  int64_t wait = retry_wait_ms(policy, out->failures, task->max_attempts, own_random(context->random, task->id),
                               wish_ms, least_ms);
  if (wait < 0 || given_up(context, route, task)) {
    to_dead(context, route, out);
  } else if (task->expires_us && context->now_us + wait * 1000 >= task->expires_us) {
    out->event = EVENT_EXPIRE;
    out->keep_us = context->config->engine.dead_retention_ms * 1000;
  } else {
    out->event = EVENT_RETRY;
    out->delay_us = wait * 1000;
  }
}

/* Back with a later due time: its destination did not take it, which is no failure of the task. What would come too
 * late is due when it expires. */
static void defer(const struct rules_context *context, const struct route_config *route, const struct rules_task *task,
                  int64_t delay_us, struct decision *out) {
  out->attempt = task->attempt_row;
  if (given_up(context, route, task)) {
    to_dead(context, route, out);
    return;
  }
  int64_t left_us = task->expires_us ? task->expires_us - context->now_us : INT64_MAX;
  out->event = EVENT_DEFER;
  out->delay_us = delay_us < left_us ? delay_us : left_us > 0 ? left_us : 0;
}

int64_t rules_patience_us(int64_t age_us) {
  int64_t wait_us = age_us / 4;
  return wait_us < DEFER_MIN_US ? DEFER_MIN_US : wait_us < DEFER_MAX_US ? wait_us : DEFER_MAX_US;
}

/* Possibly sent, and tried again for no fault of its own: the attempt counts, a failure does not. */
static void spare(const struct rules_context *context, const struct route_config *route, const struct rules_task *task,
                  struct decision *out) {
  defer(context, route, task, rules_patience_us(context->now_us - task->asked_due_us), out);
  out->attempt = task->attempt_now;
  out->log_attempt = true;
  if (out->event == EVENT_DEFER)
    out->event = EVENT_RETRY;
}

static int64_t attempt_timeout_us(const struct route_config *route, const struct rules_task *task) {
  return 1000 * (route ? route_attempt_ms(route, task->timeout_ms) : (int64_t)task->timeout_ms);
}

/* What a consumer may ask for at once: a mistaken unit parks no task for years. */
static int64_t cap_ms(int64_t wish_ms, int64_t most_ms, struct decision *out) {
  out->capped = out->capped || wish_ms > most_ms;
  return wish_ms < most_ms ? wish_ms : most_ms;
}

/* The next attempt is not put off for longer, whoever wishes it. */
static int64_t longest_wait_ms(const struct route_config *route) {
  return route && route->give_up_ms > 0 ? route->give_up_ms : 30 * DAY_MS;
}

static int64_t longest_extension_ms(int64_t timeout_ms) { return timeout_ms < DAY_MS / 10 ? DAY_MS : timeout_ms * 10; }

/* What a result record asks for; shared by records inside an HTTP response and records from a stream. */
static void follow_record(const struct rules_context *context, const struct route_config *route,
                          const struct rules_task *task, const struct result_record *record, struct decision *out) {
  out->error_class = record->error_class;
  out->error = record->error_message;
  out->record = record;
  out->log_attempt = true;
  switch (record->status) {
  case RESULT_DONE:
    to_done(context, route, out);
    break;
  case RESULT_RETRY:
    out->error_class = out->error_class ? out->error_class : "result.retry";
    fail(context, route, task, cap_ms(record->retry_in_ms, longest_wait_ms(route), out), -1, out);
    break;
  case RESULT_FAIL:
    out->error_class = out->error_class ? out->error_class : "result.fail";
    out->failures = task->failures + 1;
    to_dead(context, route, out);
    break;
  case RESULT_PROGRESS:
    out->event = EVENT_PROGRESS;
    out->log_attempt = false;
    out->delay_us = attempt_timeout_us(route, task);
    if (record->extend_ms >= 0)
      out->delay_us = 1000 * cap_ms(record->extend_ms, longest_extension_ms(out->delay_us / 1000), out);
    break;
  }
}

static void delivered(const struct rules_context *context, const struct route_config *route,
                      const struct rules_task *task, const struct duebox_outcome *outcome,
                      const struct result_record *record, struct decision *out) {
  bool expected = route->result == RESULT_EXPECTED;
  out->published_us = context->now_us;
  /* As 202 is: it would await nothing, and be sent again though it was taken. */
  bool unheard =
      record && record->status == RESULT_PROGRESS && !task->answer_comes && outcome->answer != DUEBOX_ANSWER_LATER;
  if (record && !unheard) {
    follow_record(context, route, task, record, out);
    if (record->status == RESULT_PROGRESS) /* the call is over, the work goes on */
      out->event = EVENT_PUBLISHED;
  } else if (!record &&
             (outcome->answer == DUEBOX_ANSWER_LATER || (outcome->answer == DUEBOX_ANSWER_NONE && expected))) {
    out->event = EVENT_PUBLISHED;
    out->delay_us = attempt_timeout_us(route, task);
    out->log_attempt = route->every_attempt;
  } else {
    to_done(context, route, out);
  }
  if (out->event == EVENT_PUBLISHED)
    out->answer_to = route->answer_to;
}

/* The destination is down or gone. Where that is the route's, the row goes back as it is; a row whose own target is in
 * trouble is tried again ever more seldom, and one that was the route's probe leaves the next probe to another. */
static void not_taken(const struct rules_context *context, const struct route_config *route,
                      const struct rules_task *task, const struct duebox_outcome *outcome, struct decision *out,
                      bool *written) {
  bool own_target = outcome->scope == DUEBOX_SCOPE_TARGET && route->many_targets;
  if (own_target && outcome->cls == DUEBOX_GONE)
    defer(context, route, task, RULES_GONE_MS * INT64_C(1000), out);
  else if (own_target)
    defer(context, route, task, rules_patience_us(context->now_us - task->asked_due_us), out);
  else if (given_up(context, route, task))
    to_dead(context, route, out);
  else if (task->probe)
    defer(context, route, task, DEFER_MIN_US, out);
  else
    *written = task->state == TASK_CLAIMED;
}

/* Its sink had it, and the daemon lives: a crash before was not its doing. What ends keeps its count for the history.
 */
static void survived(struct decision *out) {
  if (out->event == EVENT_RETRY || out->event == EVENT_PUBLISHED)
    out->recoveries = 0;
}

static void follow_outcome(const struct rules_context *context, const struct route_config *route,
                           const struct rules_task *task, const struct duebox_outcome *outcome,
                           const struct result_record *record, struct decision *out, bool *written) {
  start_decision(task, EVENT_RELEASE, out);
  out->error_class = outcome->error_class;
  out->error = outcome->message;
  *written = true;
  switch (outcome->cls) {
  case DUEBOX_DELIVERED:
    delivered(context, route, task, outcome, record, out);
    return;
  case DUEBOX_REJECTED:
    out->failures = task->failures + 1;
    to_dead(context, route, out);
    return;
  case DUEBOX_RETRY:
  case DUEBOX_UNKNOWN:
    if (outcome->cls == DUEBOX_UNKNOWN && outcome->blameless)
      spare(context, route, task, out);
    else
      fail(context, route, task, -1, cap_ms(outcome->retry_after_ms, longest_wait_ms(route), out), out);
    return;
  case DUEBOX_UNAVAILABLE:
  case DUEBOX_GONE:
    not_taken(context, route, task, outcome, out, written);
    return;
  }
  /* An unknown class from a plugin: nothing is known, so it counts as possibly sent. */
  fail(context, route, task, -1, -1, out);
}

void rules_outcome(const struct rules_context *context, const struct route_config *route, const struct rules_task *task,
                   const struct duebox_outcome *outcome, const struct result_record *record, struct decision *out,
                   bool *written) {
  follow_outcome(context, route, task, outcome, record, out, written);
  survived(out);
}

void rules_no_result(const struct rules_context *context, const struct route_config *route,
                     const struct rules_task *task, struct decision *out) {
  start_decision(task, EVENT_RETRY, out);
  out->error_class = "result.timeout";
  out->error = "no result came within the time-out";
  fail(context, route, task, -1, -1, out);
}

void rules_stopped(const struct rules_task *task, struct decision *out) {
  start_decision(task, EVENT_RETRY, out);
  out->error_class = "daemon.stopped";
  out->error = "the daemon was stopped before an answer came; it may have been received";
  out->log_attempt = true;
}

void rules_recover(const struct rules_context *context, const struct route_config *route, const struct rules_task *task,
                   struct decision *out) {
  start_decision(task, EVENT_RELEASE, out);
  out->recoveries = task->recoveries + 1;
  out->error_class = "claim.lost";
  out->error = "the daemon that had claimed it ended without saying what became of it";
  if (context->config->engine.max_recoveries > 0 && out->recoveries >= context->config->engine.max_recoveries) {
    out->error_class = "claim.poison";
    out->error =
        "it was in flight each time when a daemon crashed, or lost its lease; see docs/OPERATIONS, poison tasks";
    to_dead(context, route, out);
  } else if (given_up(context, route, task)) {
    to_dead(context, route, out);
  }
}

void rules_refuse(const struct rules_context *context, const struct route_config *route, const struct rules_task *task,
                  const char *error_class, const char *error, struct decision *out) {
  start_decision(task, EVENT_DEAD, out);
  out->attempt = task->attempt_row;
  out->error_class = error_class;
  out->error = error;
  to_dead(context, route, out);
}

void rules_expire(const struct rules_context *context, const struct rules_task *task, struct decision *out) {
  start_decision(task, EVENT_EXPIRE, out);
  out->attempt = task->attempt_row;
  out->keep_us = context->config->engine.dead_retention_ms * 1000;
}

bool rules_strand(const struct rules_context *context, const struct route_config *route, const struct rules_task *task,
                  const char *error, struct decision *out) {
  if (!given_up(context, route, task))
    return false;
  rules_refuse(context, route, task, "host.silent", error, out);
  return true;
}

void rules_unsent(const struct rules_task *task, struct decision *out, bool *written) {
  start_decision(task, EVENT_RELEASE, out);
  *written = task->state == TASK_CLAIMED;
}

void rules_defer(const struct rules_context *context, const struct route_config *route, const struct rules_task *task,
                 int64_t delay_us, const char *error_class, const char *error, struct decision *out) {
  start_decision(task, EVENT_DEFER, out);
  out->error_class = error_class;
  out->error = error;
  defer(context, route, task, delay_us, out);
}

void rules_move(const struct rules_task *task, struct decision *out) {
  start_decision(task, EVENT_RELEASE, out);
  out->attempt = task->attempt_row;
}

void rules_block(const struct rules_task *task, struct decision *out) {
  start_decision(task, EVENT_BLOCK, out);
  out->attempt = task->attempt_row;
}

enum { CLOCK_DOUBT_US = 100 * 1000 }; /* nodes of a cluster may be so far apart */

/* A result of an attempt that the row does not count. That may be in flight only as the next one, in memory (then the
 * row counts it when the outcome is settled), and nothing leaves before its time. Whatever else says so is about
 * another task that had this message id, or a mistake: what was never sent does not end. */
static enum result_fate meet_uncounted(const struct route_config *route, const struct result_row *row,
                                       struct result_record *record) {
  if (record->attempt != row->attempt + 1 || row->state != TASK_SCHEDULED)
    return RESULT_ORPHAN;
  if (record->row) /* its URL proves that it left */
    return RESULT_APPLIED;
  if (row->shard == SHARD_BOUND)
    return RESULT_ORPHAN;          /* every claim there is recorded */
  if (row->due_us > row->now_us) { /* unless it was put off after it was sent, or a clock went back */
    bool nearly = row->due_us - row->now_us < CLOCK_DOUBT_US;
    if (!nearly && row->change != CHANGE_SINCE_SENT)
      return RESULT_ORPHAN;
    record->too_soon = record->too_soon || !nearly;
    return record->too_soon && record->is_awaited ? RESULT_ORPHAN : RESULT_BUSY; /* it never counts, see rules_result */
  }
  if (!route)
    return RESULT_BUSY; /* another daemon may know it, and records what it sent */
  /* Who sent it records that in a moment. By the configuration of now it may not have left like that, but under the one
   * before a reload, or from a daemon that has another; and a sink may say that the answer comes later although the
   * route expects none. Where nobody records it, it was never sent. */
  bool likely = route->claim == CLAIM_MEMORY && route->result == RESULT_EXPECTED;
  return likely && record->cannot_wait ? RESULT_APPLIED : RESULT_BUSY;
}

/* Whether a callback's URL, if it is one, is of this row. A large id may have become another: the message id and the
 * version of what was sent tell then that it is the same task. Both ids can come again, by SET insert_id or where the
 * counter goes back: what was given to one route's endpoint speaks for no task of another's, but for one that was
 * changed while it was out, perhaps in its route; that is sent again, or judged by who sent it. */
static bool is_of_row(const struct result_row *row, const struct result_record *record) {
  bool moved = record->row >= STORE_ID_MAY_CHANGE && record->version && record->version == row->version;
  bool elsewhere = record->lane && record->lane != callback_lane(row->route) && row->change != CHANGE_SINCE_SENT;
  return (!record->row || record->row == row->id || moved) && !elsewhere;
}

/* What a result means that ends an attempt of a row which plain SQL may have changed since. What was sent is over; what
 * is there now is not. */
static enum result_fate meet_change(const struct result_row *row, const struct result_record *record) {
  if (record->version && record->version == row->version) /* its URL proves that this very version was sent */
    return RESULT_APPLIED;
  if (record->attempt < row->attempt) /* nobody knows what it was about */
    return row->change == CHANGE_NONE ? RESULT_APPLIED : RESULT_STALE;
  if (row->change != CHANGE_SINCE_SENT || row->state == TASK_AWAITING)
    return RESULT_APPLIED;
  bool in_flight = record->attempt > row->attempt || row->state == TASK_CLAIMED;
  return in_flight ? RESULT_BUSY /* whoever sent it knows what of the row he sent, and records it */ : RESULT_STALE;
}

/* Whether the message of this attempt, or of a later one that has left by now, told its consumer to answer there. */
static bool was_told(const struct config *config, const struct result_row *row, const struct result_record *record) {
  bool has_left = record->attempt < row->attempt || (record->attempt == row->attempt && row->state != TASK_CLAIMED);
  return row->answer_to && has_left && config_answer_to(config, record->entry) == row->answer_to;
}

/* Whether it may be about a copy whose message named somewhere that nobody has recorded yet: consumers can be quicker,
 * and a reload in between changes where the route's next messages name. */
static bool is_before_its_record(const struct result_row *row, const struct result_record *record) {
  bool claimed = row->state == TASK_CLAIMED && record->attempt == row->attempt;
  bool in_memory = row->state == TASK_SCHEDULED && record->attempt == row->attempt + 1;
  return (claimed || in_memory) && !record->cannot_wait;
}

/* A record from an entry of results speaks for the consumers of the routes that answer there, and for no others. While
 * nobody waits for its task's result, that task is not the record's to end. */
static enum result_fate meet_road(const struct config *config, const struct route_config *route,
                                  const struct result_row *row, const struct result_record *record) {
  if (!record->entry) /* a callback's URL is its row's alone, and the API's token opens all */
    return RESULT_APPLIED;
  bool answers = !route || route->plugin->module->capabilities & DUEBOX_CAP_ANSWERS;
  if (!config_answers_on(config, record->entry, row->route, route) && !was_told(config, row, record))
    return !answers && is_before_its_record(row, record) ? RESULT_BUSY : RESULT_MISROUTED;
  if ((route && route->result == RESULT_EXPECTED) || row->state == TASK_AWAITING || !task_state_living(row->state) ||
      record->attempt > row->attempt)
    return RESULT_APPLIED;
  if (row->state == TASK_CLAIMED)
    return RESULT_BUSY; /* its call is open, and says first whether a result comes later */
  return answers ? RESULT_APPLIED : RESULT_MISROUTED;
}

/* Its consumer asks for more time before it is recorded that the message left: that sets a deadline, which is then put
 * off. Nobody hears it said to a broker that it came to nothing. */
static bool is_ahead_of_its_deadline(const struct result_row *row, const struct result_record *record) {
  return record->status == RESULT_PROGRESS && record->extend_ms >= 0 && row->state == TASK_CLAIMED &&
         record->attempt == row->attempt && record->entry && !record->cannot_wait;
}

static enum result_fate meet(const struct rules_context *context, const struct result_row *row,
                             struct result_record *record, struct decision *out) {
  const struct route_config *route = config_route(context->config, row->route, strlen(row->route));
  struct rules_task task = {
      .id = row->id,
      .shard = row->shard,
      .state = row->state,
      .attempt_row = row->attempt,
      .attempt_now = record->attempt > row->attempt ? record->attempt : row->attempt,
      .failures = row->failures,
      .recoveries = row->recoveries,
      .max_attempts = row->max_attempts,
      .timeout_ms = row->timeout_ms,
      .due_us = row->due_us,
      .asked_due_us = row->asked_due_us,
      .expires_us = row->expires_us,
  };
  enum result_fate road = meet_road(context->config, route, row, record), fate = RESULT_APPLIED;
  if (road == RESULT_MISROUTED)
    return road;
  if (!task_state_living(row->state) || !is_of_row(row, record))
    return RESULT_LATE; /* or it had this message id before */
  if (record->attempt == 0)
    return RESULT_ORPHAN;
  if (record->attempt > row->attempt && (fate = meet_uncounted(route, row, record)) != RESULT_APPLIED)
    return fate;
  if (road == RESULT_BUSY || is_ahead_of_its_deadline(row, record))
    return RESULT_BUSY;
  bool current = record->attempt >= row->attempt;
  /* The work of an older attempt is done: the effect has happened, so the pending retry is called off. */
  if (!current && (record->current_only || record->status != RESULT_DONE))
    return RESULT_STALE;
  /* A row that waits for a retry of this very attempt has had its result: nothing but a success changes that, wherever
   * it waits (held, or behind another of its order_key). */
  bool runs = row->state == TASK_CLAIMED || row->state == TASK_AWAITING;
  if (!runs && record->attempt == row->attempt && record->status != RESULT_DONE)
    return RESULT_DUPLICATE;
  if (record->status != RESULT_PROGRESS)
    fate = meet_change(row, record);
  if (fate != RESULT_APPLIED)
    return fate;
  if (route)
    record_limit_checkpoint(record, route->max_checkpoint);
  start_decision(&task, EVENT_DONE, out);
  follow_record(context, route, &task, record, out);
  if (row->change == CHANGE_SINCE_SENT && row->state == TASK_AWAITING && record->status != RESULT_PROGRESS) {
    out->event = EVENT_RETRY; /* at once, with the new content */
    out->changed = true;
  }
  return RESULT_APPLIED;
}

/* What was put off after it had been sent goes back to the table. So what has been sent by now of a task that was not
 * due when the record was met was sent since, and the record, which is older, is about something else. */
enum result_fate rules_result(void *ctx, const struct result_row *row, struct result_record *record,
                              struct decision *out) {
  enum result_fate fate = meet(ctx, row, record, out);
  return fate == RESULT_APPLIED && record->too_soon ? RESULT_ORPHAN : fate;
}
