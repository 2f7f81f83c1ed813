/* SPDX-License-Identifier: MIT
 *
 * What follows from what happened: outcomes, results, time-outs and crashes against the rules, one fact at a time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "core/rules.h"

enum { SECOND = 1000000 };
static const int64_t NOW = 1800000000LL * SECOND;

struct fixture {
  struct plugin_config plugin;
  struct route_config routes[2]; /* "orders" and the alert route "ops", sorted by name */
  struct config config;
  struct rules_context context;
  struct rules_task task;
};

static struct fixture make(void) {
  static struct fixture f;
  f = (struct fixture){0};
  f.routes[1] =
      (struct route_config){.name = "orders",
                            .plugin = &f.plugin,
                            .timeout_ms = 30000,
                            .retry = {.backoff_ms = 1000, .multiplier = 2, .max_ms = 60000, .max_attempts = 3},
                            .give_up_ms = 7LL * 86400 * 1000};
  f.routes[0] = (struct route_config){.name = "ops", .plugin = &f.plugin, .retry = {.max_attempts = 1}};
  f.config.routes = f.routes;
  f.config.route_count = 2;
  f.config.dead_alert = &f.routes[0];
  f.config.engine.dead_retention_ms = 1000;
  f.config.engine.max_recoveries = 3;
  f.context = (struct rules_context){.config = &f.config, .now_us = NOW, .random = 0};
  f.task = (struct rules_task){.id = 7,
                               .shard = 2,
                               .state = TASK_SCHEDULED,
                               .attempt_now = 1,
                               .due_us = NOW - SECOND,
                               .asked_due_us = NOW - SECOND};
  return f;
}

static struct decision outcome(struct fixture *f, struct duebox_outcome outcome, const struct result_record *record,
                               bool *written) {
  struct decision d;
  rules_outcome(&f->context, &f->routes[1], &f->task, &outcome, record, &d, written);
  assert_int_equal(d.id, 7);
  assert_int_equal(d.shard, 2);
  assert_int_equal(d.from, f->task.state);
  assert_int_equal(d.attempt_from, f->task.attempt_row);
  return d;
}

static void delivered_without_result_is_done(void **state) {
  struct fixture f = make();
  bool written = false;
  struct decision d = outcome(&f, DUEBOX_OUTCOME(.cls = DUEBOX_DELIVERED), NULL, &written);
  assert_true(written);
  assert_int_equal(d.event, EVENT_DONE);
  assert_int_equal(d.keep_us, 0);
  assert_int_equal(d.attempt, 1);
  assert_int_equal(d.published_us, NOW);
  assert_false(d.log_attempt);
  f.routes[1].history_ms = 5000;
  d = outcome(&f, DUEBOX_OUTCOME(.cls = DUEBOX_DELIVERED), NULL, &written);
  assert_int_equal(d.keep_us, 5000 * 1000);
}

static void delivered_with_result_expected_awaits(void **state) {
  struct fixture f = make();
  bool written = false;
  f.routes[1].result = RESULT_EXPECTED;
  struct decision d = outcome(&f, DUEBOX_OUTCOME(.cls = DUEBOX_DELIVERED), NULL, &written);
  assert_int_equal(d.event, EVENT_PUBLISHED);
  assert_int_equal(d.delay_us, 30LL * SECOND);
  f.task.timeout_ms = 1500; /* the row's own time-out wins */
  d = outcome(&f, DUEBOX_OUTCOME(.cls = DUEBOX_DELIVERED), NULL, &written);
  assert_int_equal(d.delay_us, 1500 * 1000);
  /* An answer that already says done needs no other result. */
  d = outcome(&f, DUEBOX_OUTCOME(.cls = DUEBOX_DELIVERED, .answer = DUEBOX_ANSWER_DONE), NULL, &written);
  assert_int_equal(d.event, EVENT_DONE);
}

static void answer_later_awaits_on_any_route(void **state) {
  struct fixture f = make();
  bool written = false;
  struct decision d =
      outcome(&f, DUEBOX_OUTCOME(.cls = DUEBOX_DELIVERED, .answer = DUEBOX_ANSWER_LATER), NULL, &written);
  assert_int_equal(d.event, EVENT_PUBLISHED);
}

static void retry_waits_longer_each_time_and_ends_dead(void **state) {
  struct fixture f = make();
  bool written = false;
  static const int64_t waits_us[] = {1 * SECOND, 2 * SECOND};
  for (uint32_t failures = 0; failures < 2; failures++) {
    f.task.failures = failures;
    struct decision d = outcome(&f, DUEBOX_OUTCOME(.cls = DUEBOX_RETRY, .error_class = "x"), NULL, &written);
    assert_int_equal(d.event, EVENT_RETRY);
    assert_int_equal(d.failures, failures + 1);
    assert_int_equal(d.delay_us, waits_us[failures]);
    assert_string_equal(d.error_class, "x");
    assert_true(d.log_attempt);
  }
  f.task.failures = 2;
  struct decision d = outcome(&f, DUEBOX_OUTCOME(.cls = DUEBOX_RETRY), NULL, &written);
  assert_int_equal(d.event, EVENT_DEAD);
  assert_string_equal(d.alert_route, "ops");
  assert_int_equal(d.keep_us, 1000 * 1000);
  f.task.max_attempts = 9; /* the row's own budget wins */
  d = outcome(&f, DUEBOX_OUTCOME(.cls = DUEBOX_RETRY), NULL, &written);
  assert_int_equal(d.event, EVENT_RETRY);
}

static void retry_after_is_the_least_wait(void **state) {
  struct fixture f = make();
  bool written = false;
  const struct duebox_outcome hour = DUEBOX_OUTCOME_AFTER(3600 * 1000, .cls = DUEBOX_RETRY);
  assert_int_equal(outcome(&f, hour, NULL, &written).delay_us, INT64_C(3600) * 1000 * 1000);
  assert_true(outcome(&f, DUEBOX_OUTCOME_AFTER(1, .cls = DUEBOX_RETRY), NULL, &written).delay_us > 1000);
}

static void rejected_is_dead_at_once(void **state) {
  struct fixture f = make();
  bool written = false;
  struct decision d = outcome(&f, DUEBOX_OUTCOME(.cls = DUEBOX_REJECTED), NULL, &written);
  assert_int_equal(d.event, EVENT_DEAD);
  assert_int_equal(d.failures, 1);
}

/* Possibly sent, and for no fault of its own: the attempt counts, so that a copy that arrived is told apart, and no
 * number of such failures makes it dead, until it is given up for its age. */
static void a_blameless_task_pays_no_failure(void **state) {
  struct fixture f = make();
  bool written = false;
  f.task.failures = 2; /* of three */
  struct decision d = outcome(&f, DUEBOX_OUTCOME(.cls = DUEBOX_UNKNOWN, .blameless = true), NULL, &written);
  assert_true(written);
  assert_int_equal(d.event, EVENT_RETRY);
  assert_int_equal(d.attempt, 1);
  assert_int_equal(d.failures, 2);
  assert_in_range(d.delay_us, 1, SECOND);
  assert_true(d.log_attempt);
  d = outcome(&f, DUEBOX_OUTCOME(.cls = DUEBOX_RETRY, .blameless = true), NULL, &written);
  assert_int_equal(d.event, EVENT_DEAD); /* it says nothing beside another class */
  f.routes[1].retry.max_attempts = 1;
  f.task.failures = 0;
  d = outcome(&f, DUEBOX_OUTCOME(.cls = DUEBOX_UNKNOWN, .blameless = true), NULL, &written);
  assert_int_equal(d.event, EVENT_RETRY);
  f.task.asked_due_us = NOW - 8LL * 86400 * SECOND;
  d = outcome(&f, DUEBOX_OUTCOME(.cls = DUEBOX_UNKNOWN, .blameless = true), NULL, &written);
  assert_int_equal(d.event, EVENT_DEAD);
}

static void unavailable_burns_nothing(void **state) {
  struct fixture f = make();
  bool written = true;
  (void)outcome(&f, DUEBOX_OUTCOME(.cls = DUEBOX_UNAVAILABLE), NULL, &written);
  assert_false(written); /* a memory claim just goes back */
  f.task.state = TASK_CLAIMED;
  f.task.attempt_row = 1;
  struct decision d = outcome(&f, DUEBOX_OUTCOME(.cls = DUEBOX_UNAVAILABLE), NULL, &written);
  assert_true(written);
  assert_int_equal(d.event, EVENT_RELEASE);
  assert_int_equal(d.failures, 0);
  f.task.asked_due_us = NOW - 8LL * 86400 * SECOND; /* but not for ever */
  d = outcome(&f, DUEBOX_OUTCOME(.cls = DUEBOX_UNAVAILABLE), NULL, &written);
  assert_int_equal(d.event, EVENT_DEAD);
}

/* One task without a topic, key or URL costs only itself: it goes behind the others without using an attempt, ever more
 * seldom, and ends where people see it. Where all tasks of the route go to one place, that is the route's trouble. */
static void a_task_whose_own_target_is_in_trouble_waits_by_itself(void **state) {
  static const struct {
    enum duebox_outcome_class cls;
    int64_t age_us, delay_us;
  } rows[] = {{DUEBOX_UNAVAILABLE, 0, SECOND / 4},
              {DUEBOX_UNAVAILABLE, 40 * SECOND, 10 * SECOND},
              {DUEBOX_GONE, 40 * SECOND, 600 * SECOND},
              {DUEBOX_UNAVAILABLE, 3600LL * SECOND, 60 * SECOND}};
  struct fixture f = make();
  bool written = false;
  f.routes[1].many_targets = true;
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    const struct duebox_outcome o =
        DUEBOX_OUTCOME(.cls = rows[i].cls, .scope = DUEBOX_SCOPE_TARGET, .error_class = "x.gone", .message = "no");
    f.task.asked_due_us = NOW - rows[i].age_us;
    struct decision d = outcome(&f, o, NULL, &written);
    assert_true(written);
    assert_int_equal(d.event, EVENT_DEFER);
    assert_int_equal(d.delay_us, rows[i].delay_us);
    assert_int_equal(d.failures, 0);
    assert_int_equal(d.attempt, 0); /* none was used */
    assert_false(d.log_attempt);
    assert_string_equal(d.error_class, "x.gone");
  }
  const struct duebox_outcome down =
      DUEBOX_OUTCOME(.cls = DUEBOX_UNAVAILABLE, .scope = DUEBOX_SCOPE_TARGET, .error_class = "x.gone");
  f.task.expires_us = NOW + 2 * SECOND; /* nothing sleeps beyond its own time */
  assert_int_equal(outcome(&f, down, NULL, &written).delay_us, 2 * SECOND);
  f.task.expires_us = 0;
  f.task.asked_due_us = NOW - 8LL * 86400 * SECOND;
  struct decision d = outcome(&f, down, NULL, &written);
  assert_int_equal(d.event, EVENT_DEAD);
  assert_string_equal(d.error_class, "x.gone");
  rules_defer(&f.context, &f.routes[1], &f.task, SECOND, "x.gone", "no", &d); /* also one that was not sent */
  assert_int_equal(d.event, EVENT_DEAD);
  assert_string_equal(d.error_class, "x.gone");
  f.task.asked_due_us = NOW;
  f.routes[1].many_targets = false;
  (void)outcome(&f, down, NULL, &written);
  assert_false(written);
}

/* The probe of a suspended route that failed leaves the next probe to another row. */
static void a_failed_probe_goes_behind_the_others(void **state) {
  struct fixture f = make();
  bool written = false;
  f.task.probe = true;
  struct decision d = outcome(&f, DUEBOX_OUTCOME(.cls = DUEBOX_UNAVAILABLE), NULL, &written);
  assert_true(written);
  assert_int_equal(d.event, EVENT_DEFER);
  assert_true(d.delay_us > 0 && d.delay_us <= SECOND);
}

/* Waiting for room is no failure, however old the task is. */
static void unsent_is_never_dead(void **state) {
  struct fixture f = make();
  struct decision d;
  bool written = true;
  f.task.asked_due_us = NOW - 30LL * 86400 * SECOND;
  rules_unsent(&f.task, &d, &written);
  assert_int_equal(d.event, EVENT_RELEASE);
  assert_false(written);
  f.task.state = TASK_CLAIMED;
  rules_unsent(&f.task, &d, &written);
  assert_int_equal(d.event, EVENT_RELEASE);
  assert_true(written);
}

static void retry_beyond_expiry_expires(void **state) {
  struct fixture f = make();
  bool written = false;
  f.task.expires_us = NOW + SECOND / 2;
  struct decision d = outcome(&f, DUEBOX_OUTCOME(.cls = DUEBOX_RETRY), NULL, &written);
  assert_int_equal(d.event, EVENT_EXPIRE);
}

static void record_in_the_answer_decides(void **state) {
  struct fixture f = make();
  bool written = false;
  struct duebox_outcome o = DUEBOX_OUTCOME(.cls = DUEBOX_DELIVERED, .answer = DUEBOX_ANSWER_RECORD);
  struct result_record record = {.status = RESULT_RETRY, .retry_in_ms = 70, .extend_ms = -1, .error_class = "busy"};
  struct decision d = outcome(&f, o, &record, &written);
  assert_int_equal(d.event, EVENT_RETRY);
  assert_int_equal(d.delay_us, 70 * 1000);
  assert_string_equal(d.error_class, "busy");
  record.status = RESULT_FAIL;
  assert_int_equal(outcome(&f, o, &record, &written).event, EVENT_DEAD);
  record.status = RESULT_DONE;
  assert_int_equal(outcome(&f, o, &record, &written).event, EVENT_DONE);
  record.status = RESULT_PROGRESS;
  record.extend_ms = 5000;
  f.task.answer_comes = true;
  d = outcome(&f, o, &record, &written);
  assert_int_equal(d.event, EVENT_PUBLISHED);
  assert_int_equal(d.delay_us, 5 * SECOND);
}

static void a_dead_alert_raises_no_alert(void **state) {
  struct fixture f = make();
  struct decision d;
  rules_refuse(&f.context, &f.routes[0], &f.task, "row.headers", "bad", &d);
  assert_int_equal(d.event, EVENT_DEAD);
  assert_null(d.alert_route);
  rules_refuse(&f.context, &f.routes[1], &f.task, "row.headers", "bad", &d);
  assert_string_equal(d.alert_route, "ops");
  assert_int_equal(d.attempt, 0); /* it was never handed out */
}

static void a_crashed_claim_goes_back_three_times(void **state) {
  struct fixture f = make();
  struct decision d;
  f.task.state = TASK_CLAIMED;
  f.task.recoveries = 1;
  rules_recover(&f.context, &f.routes[1], &f.task, &d);
  assert_int_equal(d.event, EVENT_RELEASE);
  assert_int_equal(d.recoveries, 2);
  assert_int_equal(d.failures, 0);
  f.task.recoveries = 2;
  rules_recover(&f.context, &f.routes[1], &f.task, &d);
  assert_int_equal(d.event, EVENT_DEAD);
  assert_string_equal(d.error_class, "claim.poison");
}

/* Three deploys must not use up three attempts. */
/* Crashes that are years apart, with good attempts between them, are not its doing (P1: it would end dead). */
static void only_crashes_in_a_row_are_counted(void **state) {
  struct fixture f = make();
  bool written = false;
  f.task.state = TASK_CLAIMED;
  f.task.recoveries = 2;
  struct decision d = outcome(&f, DUEBOX_OUTCOME(.cls = DUEBOX_RETRY), NULL, &written);
  assert_int_equal(d.event, EVENT_RETRY);
  assert_int_equal(d.recoveries, 0);
  d = outcome(&f, DUEBOX_OUTCOME(.cls = DUEBOX_DELIVERED, .answer = DUEBOX_ANSWER_LATER), NULL, &written);
  assert_int_equal(d.event, EVENT_PUBLISHED);
  assert_int_equal(d.recoveries, 0);
  d = outcome(&f, DUEBOX_OUTCOME(.cls = DUEBOX_UNAVAILABLE), NULL, &written); /* its sink had nothing of it */
  assert_int_equal(d.recoveries, 2);
}

static void an_orderly_stop_is_no_failure(void **state) {
  struct fixture f = make();
  struct decision d;
  f.task.state = TASK_CLAIMED;
  f.task.failures = 2;
  rules_stopped(&f.task, &d);
  assert_int_equal(d.event, EVENT_RETRY);
  assert_int_equal(d.failures, 2);
  assert_int_equal(d.delay_us, 0);
  assert_string_equal(d.error_class, "daemon.stopped");
}

static void no_result_counts_as_failure(void **state) {
  struct fixture f = make();
  struct decision d;
  f.task.state = TASK_AWAITING;
  rules_no_result(&f.context, &f.routes[1], &f.task, &d);
  assert_int_equal(d.event, EVENT_RETRY);
  assert_int_equal(d.failures, 1);
  assert_string_equal(d.error_class, "result.timeout");
}

/* A callback URL is good while its attempt is the current one, and no longer. */
static void a_callback_of_an_older_attempt_is_stale(void **state) {
  struct fixture f = make();
  struct result_row row = {.id = 7, .state = TASK_AWAITING, .attempt = 3, .route = "orders", .asked_due_us = NOW};
  struct result_record record = {
      .attempt = 2, .status = RESULT_DONE, .retry_in_ms = -1, .extend_ms = -1, .progress = -1};
  struct decision d = {0};
  assert_int_equal(rules_result(&f.context, &row, &record, &d), RESULT_APPLIED);
  record.current_only = true;
  assert_int_equal(rules_result(&f.context, &row, &record, &d), RESULT_STALE);
  record.attempt = 3;
  assert_int_equal(rules_result(&f.context, &row, &record, &d), RESULT_APPLIED);
}

/* A mistaken unit parks no task for years (P2): what a consumer asks for at once has a bound. */
static void no_consumer_parks_a_task_for_years(void **state) {
  static const int64_t TEN_YEARS_MS = 315360000000, DAY_MS = 86400000;
  struct fixture f = make();
  struct result_row row = {
      .id = 7, .state = TASK_AWAITING, .attempt = 1, .route = "orders", .asked_due_us = NOW, .now_us = NOW};
  struct result_record record = {
      .attempt = 1, .status = RESULT_PROGRESS, .retry_in_ms = -1, .extend_ms = TEN_YEARS_MS, .progress = -1};
  struct decision d = {0};
  assert_int_equal(rules_result(&f.context, &row, &record, &d), RESULT_APPLIED);
  assert_int_equal(d.delay_us, DAY_MS * 1000);
  assert_true(d.capped);
  f.config.routes[1].timeout_max_ms = row.timeout_ms = (uint32_t)DAY_MS;
  assert_int_equal(rules_result(&f.context, &row, &record, &d), RESULT_APPLIED);
  assert_int_equal(d.delay_us, 10 * DAY_MS * 1000);
  record.extend_ms = 5000;
  assert_int_equal(rules_result(&f.context, &row, &record, &d), RESULT_APPLIED);
  assert_int_equal(d.delay_us, 5LL * SECOND);
  assert_false(d.capped);
  record.status = RESULT_RETRY;
  record.retry_in_ms = TEN_YEARS_MS;
  assert_int_equal(rules_result(&f.context, &row, &record, &d), RESULT_APPLIED);
  assert_int_equal(d.delay_us, 7 * DAY_MS * 1000); /* give_up */
  assert_true(d.capped);
  f.config.routes[1].give_up_ms = 0;
  assert_int_equal(rules_result(&f.context, &row, &record, &d), RESULT_APPLIED);
  assert_int_equal(d.delay_us, 30 * DAY_MS * 1000);
  record.retry_in_ms = 70;
  assert_int_equal(rules_result(&f.context, &row, &record, &d), RESULT_APPLIED);
  assert_int_equal(d.delay_us, 70 * 1000);
}

/* A callback URL is for one row: where another task has the message id by now, it says nothing about that (P1). It is
 * proof that its attempt was handed out, on whichever route and however long ago the task was put off. */
static void a_callback_is_for_one_row(void **state) {
  struct fixture f = make();
  struct result_row row = {.id = 7, .state = TASK_SCHEDULED, .route = "orders", .asked_due_us = NOW, .now_us = NOW};
  struct result_record record = {.row = 6,
                                 .attempt = 1,
                                 .current_only = true,
                                 .status = RESULT_DONE,
                                 .retry_in_ms = -1,
                                 .extend_ms = -1,
                                 .progress = -1};
  struct decision d = {0};
  assert_int_equal(rules_result(&f.context, &row, &record, &d), RESULT_LATE);
  row.state = TASK_AWAITING;
  row.attempt = 1;
  assert_int_equal(rules_result(&f.context, &row, &record, &d), RESULT_LATE);
  record.row = 7;
  assert_int_equal(rules_result(&f.context, &row, &record, &d), RESULT_APPLIED);
  row.state = TASK_SCHEDULED;
  row.attempt = 0;
  assert_int_equal(rules_result(&f.context, &row, &record, &d), RESULT_APPLIED);
  record.attempt = 2;
  assert_int_equal(rules_result(&f.context, &row, &record, &d), RESULT_ORPHAN);
}

/* One result record against one row. */
struct meeting {
  const char *name;
  enum task_state state;
  uint32_t row_attempt, record_attempt;
  enum result_status status;
  enum result_fate fate;
  enum task_event event; /* where applied */
  enum row_change change;
};

static const struct meeting meetings[] = {
    {"done of the awaited attempt", TASK_AWAITING, 2, 2, RESULT_DONE, RESULT_APPLIED, EVENT_DONE, CHANGE_NONE},
    {"retry of the awaited attempt", TASK_AWAITING, 2, 2, RESULT_RETRY, RESULT_APPLIED, EVENT_RETRY, CHANGE_NONE},
    {"fail of the awaited attempt", TASK_AWAITING, 2, 2, RESULT_FAIL, RESULT_APPLIED, EVENT_DEAD, CHANGE_NONE},
    {"progress of the awaited attempt", TASK_AWAITING, 2, 2, RESULT_PROGRESS, RESULT_APPLIED, EVENT_PROGRESS,
     CHANGE_NONE},
    {"done before the publish is recorded", TASK_SCHEDULED, 1, 2, RESULT_DONE, RESULT_BUSY, 0, CHANGE_NONE},
    {"retry before the publish is recorded", TASK_SCHEDULED, 1, 2, RESULT_RETRY, RESULT_BUSY, 0, CHANGE_NONE},
    {"done while the call is still open", TASK_CLAIMED, 2, 2, RESULT_DONE, RESULT_APPLIED, EVENT_DONE, CHANGE_NONE},
    {"failure of an older attempt", TASK_AWAITING, 3, 2, RESULT_FAIL, RESULT_STALE, 0, CHANGE_NONE},
    {"success of an older attempt", TASK_AWAITING, 3, 2, RESULT_DONE, RESULT_APPLIED, EVENT_DONE, CHANGE_NONE},
    {"second retry while it waits for the next attempt", TASK_SCHEDULED, 2, 2, RESULT_RETRY, RESULT_DUPLICATE, 0,
     CHANGE_NONE},
    {"late success while it waits for the next attempt", TASK_SCHEDULED, 2, 2, RESULT_DONE, RESULT_APPLIED, EVENT_DONE,
     CHANGE_NONE},
    {"an attempt that was never handed out", TASK_AWAITING, 2, 4, RESULT_DONE, RESULT_ORPHAN, 0, CHANGE_NONE},
    {"attempt zero", TASK_AWAITING, 2, 0, RESULT_DONE, RESULT_ORPHAN, 0, CHANGE_NONE},
    {"after the end", TASK_DONE, 2, 2, RESULT_FAIL, RESULT_LATE, 0, CHANGE_NONE},
    /* Plain SQL has changed the row: what was sent is over, what is there now is not. */
    {"done of what was published", TASK_AWAITING, 2, 2, RESULT_DONE, RESULT_APPLIED, EVENT_RETRY, CHANGE_SINCE_SENT},
    {"fail of what was published", TASK_AWAITING, 2, 2, RESULT_FAIL, RESULT_APPLIED, EVENT_RETRY, CHANGE_SINCE_SENT},
    {"done of what is awaited", TASK_AWAITING, 2, 2, RESULT_DONE, RESULT_APPLIED, EVENT_DONE, CHANGE_BEFORE_SENT},
    {"progress of what was published", TASK_AWAITING, 2, 2, RESULT_PROGRESS, RESULT_APPLIED, EVENT_PROGRESS,
     CHANGE_SINCE_SENT},
    {"done of nobody knows what, unrecorded", TASK_SCHEDULED, 1, 2, RESULT_DONE, RESULT_BUSY, 0, CHANGE_SINCE_SENT},
    {"fail of nobody knows what, unrecorded", TASK_SCHEDULED, 1, 2, RESULT_FAIL, RESULT_BUSY, 0, CHANGE_SINCE_SENT},
    {"done of nobody knows what, claimed", TASK_CLAIMED, 2, 2, RESULT_DONE, RESULT_BUSY, 0, CHANGE_SINCE_SENT},
    {"done of what is claimed", TASK_CLAIMED, 2, 2, RESULT_DONE, RESULT_APPLIED, EVENT_DONE, CHANGE_BEFORE_SENT},
    {"late success of what it was", TASK_SCHEDULED, 2, 2, RESULT_DONE, RESULT_STALE, 0, CHANGE_SINCE_SENT},
    {"late success of what it is", TASK_SCHEDULED, 2, 2, RESULT_DONE, RESULT_APPLIED, EVENT_DONE, CHANGE_BEFORE_SENT},
    {"older success of perhaps another content", TASK_AWAITING, 3, 2, RESULT_DONE, RESULT_STALE, 0, CHANGE_BEFORE_SENT},
};

static void a_result_meets_its_row(void **state) {
  const struct meeting *m = *state;
  struct fixture f = make();
  struct result_row row = {.id = 7,
                           .state = m->state,
                           .attempt = m->row_attempt,
                           .route = "orders",
                           .asked_due_us = NOW,
                           .change = m->change};
  struct result_record record = {
      .attempt = m->record_attempt, .status = m->status, .retry_in_ms = -1, .extend_ms = -1, .progress = -1};
  struct decision d = {0};
  f.config.routes[1].result = RESULT_EXPECTED;
  assert_int_equal(rules_result(&f.context, &row, &record, &d), m->fate);
  if (m->fate == RESULT_APPLIED) {
    assert_int_equal(d.event, m->event);
    assert_int_equal(d.changed, m->change == CHANGE_SINCE_SENT && m->event == EVENT_RETRY);
    assert_int_equal(d.from, m->state);
    assert_int_equal(d.attempt_from, m->row_attempt);
    assert_true(d.attempt >= m->row_attempt); /* the token only grows */
    assert_true(task_state_next(m->state, d.event) != TASK_STATES);
  }
}

/* A task that was never sent is ended, moved or given a checkpoint by no answer (P1, P3): its message id was used
 * before and an old record came again, or a consumer counts wrongly. */
struct unsent {
  const char *name;
  enum task_state state;
  uint32_t row_attempt, record_attempt;
  int64_t due_in_us;
  enum claim_mode claim;
  enum result_mode result;
  uint8_t shard;
  const char *route;
  enum row_change change;
  enum result_fate fate;
};

#define HOUR (3600LL * SECOND)
static const struct unsent unsent[] = {
    {"really in flight", TASK_SCHEDULED, 0, 1, 0, CLAIM_MEMORY, RESULT_EXPECTED, 2, "orders", 0, RESULT_BUSY},
    {"due in an hour", TASK_SCHEDULED, 0, 1, HOUR, CLAIM_MEMORY, RESULT_EXPECTED, 2, "orders", 0, RESULT_ORPHAN},
    {"by a clock that is behind", TASK_SCHEDULED, 0, 1, SECOND / 20, CLAIM_MEMORY, RESULT_EXPECTED, 2, "orders", 0,
     RESULT_BUSY},
    {"before its retry", TASK_SCHEDULED, 1, 2, SECOND, CLAIM_MEMORY, RESULT_EXPECTED, 2, "orders", 0, RESULT_ORPHAN},
    {"put off while it was out", TASK_SCHEDULED, 0, 1, SECOND, CLAIM_MEMORY, RESULT_EXPECTED, 2, "orders",
     CHANGE_SINCE_SENT, RESULT_BUSY},
    /* It left before a reload, or the sink leaves the answer for later: no result of what is in flight is lost (P7). */
    {"recorded claims by now", TASK_SCHEDULED, 0, 1, 0, CLAIM_RECORDED, RESULT_EXPECTED, 2, "orders", 0, RESULT_BUSY},
    {"the same in an hour", TASK_SCHEDULED, 0, 1, HOUR, CLAIM_RECORDED, RESULT_EXPECTED, 2, "orders", 0, RESULT_ORPHAN},
    {"memory claims by now", TASK_CLAIMED, 1, 1, 0, CLAIM_MEMORY, RESULT_EXPECTED, 2, "orders", 0, RESULT_APPLIED},
    {"bound to a host", TASK_SCHEDULED, 0, 1, 0, CLAIM_MEMORY, RESULT_EXPECTED, SHARD_BOUND, "orders", 0,
     RESULT_ORPHAN},
    {"a route without results", TASK_SCHEDULED, 0, 1, 0, CLAIM_MEMORY, RESULT_NONE, 2, "orders", 0, RESULT_BUSY},
    {"two attempts on", TASK_SCHEDULED, 0, 2, 0, CLAIM_MEMORY, RESULT_NONE, 2, "orders", 0, RESULT_ORPHAN},
    {"another daemon's route", TASK_SCHEDULED, 0, 1, 0, CLAIM_MEMORY, RESULT_EXPECTED, 2, "else", 0, RESULT_BUSY},
    {"held", TASK_HELD, 0, 1, 0, CLAIM_MEMORY, RESULT_EXPECTED, 2, "orders", 0, RESULT_ORPHAN},
    {"blocked", TASK_BLOCKED, 0, 1, 0, CLAIM_MEMORY, RESULT_EXPECTED, 2, "orders", 0, RESULT_ORPHAN},
    {"the one after the awaited", TASK_AWAITING, 1, 2, 0, CLAIM_MEMORY, RESULT_EXPECTED, 2, "orders", 0, RESULT_ORPHAN},
    {"the one after the claimed", TASK_CLAIMED, 1, 2, 0, CLAIM_MEMORY, RESULT_EXPECTED, 2, "orders", 0, RESULT_ORPHAN},
};

static void a_result_of_what_was_never_sent(void **state) {
  static const enum result_status statuses[] = {RESULT_DONE, RESULT_RETRY, RESULT_FAIL, RESULT_PROGRESS};
  const struct unsent *u = *state;
  struct fixture f = make();
  f.config.routes[1].claim = u->claim;
  f.config.routes[1].result = u->result;
  struct result_row row = {.id = 7,
                           .shard = u->shard,
                           .state = u->state,
                           .attempt = u->row_attempt,
                           .route = u->route,
                           .due_us = NOW + u->due_in_us,
                           .asked_due_us = NOW,
                           .now_us = NOW,
                           .change = u->change};
  for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
    struct result_record record = {
        .attempt = u->record_attempt, .status = statuses[i], .retry_in_ms = -1, .extend_ms = -1, .progress = -1};
    struct decision d = {0};
    assert_int_equal(rules_result(&f.context, &row, &record, &d), u->fate);
  }
}

static void tasks_of_one_batch_have_jitter_of_their_own(void **state) {
  struct fixture f = make();
  bool low = false, high = false;
  f.routes[1].retry.jitter = 0.5;
  f.context.random = 42;
  for (uint64_t id = 1; id <= 100; id++) {
    struct decision d;
    f.task.id = id;
    rules_no_result(&f.context, &f.routes[1], &f.task, &d);
    assert_int_equal(d.event, EVENT_RETRY);
    assert_in_range(d.delay_us, SECOND / 2, SECOND * 3 / 2);
    low = low || d.delay_us < SECOND * 3 / 4;
    high = high || d.delay_us > SECOND * 5 / 4;
  }
  assert_true(low && high);
}

int main(void) {
  enum { MEETINGS = sizeof meetings / sizeof meetings[0] };
  const struct CMUnitTest rules[] = {
      cmocka_unit_test(tasks_of_one_batch_have_jitter_of_their_own),
      cmocka_unit_test(delivered_without_result_is_done),
      cmocka_unit_test(delivered_with_result_expected_awaits),
      cmocka_unit_test(answer_later_awaits_on_any_route),
      cmocka_unit_test(retry_waits_longer_each_time_and_ends_dead),
      cmocka_unit_test(retry_after_is_the_least_wait),
      cmocka_unit_test(rejected_is_dead_at_once),
      cmocka_unit_test(a_blameless_task_pays_no_failure),
      cmocka_unit_test(unavailable_burns_nothing),
      cmocka_unit_test(a_task_whose_own_target_is_in_trouble_waits_by_itself),
      cmocka_unit_test(a_failed_probe_goes_behind_the_others),
      cmocka_unit_test(unsent_is_never_dead),
      cmocka_unit_test(retry_beyond_expiry_expires),
      cmocka_unit_test(record_in_the_answer_decides),
      cmocka_unit_test(a_dead_alert_raises_no_alert),
      cmocka_unit_test(a_crashed_claim_goes_back_three_times),
      cmocka_unit_test(an_orderly_stop_is_no_failure),
      cmocka_unit_test(only_crashes_in_a_row_are_counted),
      cmocka_unit_test(a_callback_of_an_older_attempt_is_stale),
      cmocka_unit_test(a_callback_is_for_one_row),
      cmocka_unit_test(no_consumer_parks_a_task_for_years),
      cmocka_unit_test(no_result_counts_as_failure),
  };
  enum { RULES = sizeof rules / sizeof rules[0] };
  enum { UNSENT = sizeof unsent / sizeof unsent[0] };
  struct CMUnitTest tests[RULES + MEETINGS + UNSENT];
  memcpy(tests, rules, sizeof rules);
  for (size_t i = 0; i < MEETINGS; i++)
    tests[RULES + i] = (struct CMUnitTest){.name = meetings[i].name,
                                           .test_func = a_result_meets_its_row,
                                           .initial_state = (void *)(uintptr_t)&meetings[i]};
  for (size_t i = 0; i < UNSENT; i++)
    tests[RULES + MEETINGS + i] = (struct CMUnitTest){.name = unsent[i].name,
                                                      .test_func = a_result_of_what_was_never_sent,
                                                      .initial_state = (void *)(uintptr_t)&unsent[i]};
  return _cmocka_run_group_tests("rules", tests, RULES + MEETINGS + UNSENT, NULL, NULL);
}
