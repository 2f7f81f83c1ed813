/* SPDX-License-Identifier: MIT
 *
 * Cases of the port to the database: results, judged by the rules of the engine.
 */
#include <stdio.h>
#include <string.h>

#include "core/rules.h"
#include "store_double_fixture.h"

static struct plugin_config plugin;
static struct route_config routes[] = {{.name = "r",
                                        .plugin = &plugin,
                                        .result = RESULT_EXPECTED,
                                        .timeout_max_ms = 60 * 1000,
                                        .history_ms = 3600 * 1000,
                                        .max_checkpoint = 100,
                                        .retry = {.max_attempts = 5}}};
static const struct config config = {.routes = routes, .route_count = 1, .engine = {.dead_retention_ms = 3600 * 1000}};

static enum result_fate judge(void *ctx, const struct result_row *row, struct result_record *record,
                              struct decision *out) {
  struct rules_context context = {.config = &config};
  return rules_result(&context, row, record, out);
}

static struct store_result answer(const char *message_id, uint32_t attempt, enum result_status status) {
  struct store_result result = {
      .record = {.attempt = attempt, .status = status, .retry_in_ms = -1, .extend_ms = -1, .progress = -1},
      .source = "bus",
      .origin = "results[0]@7",
      .body = {.data = "{}", .len = 2}};
  (void)snprintf(result.record.message_id, sizeof result.record.message_id, "%s", message_id);
  return result;
}

static void apply(struct fixture *f, struct store_result *results, size_t count) {
  ok(f, f->ops->settle_results(f->ss, results, count, judge, NULL, &f->err));
}

static enum result_fate say(struct fixture *f, uint32_t attempt, enum result_status status) {
  struct store_result result = answer("m1", attempt, status);
  apply(f, &result, 1);
  return result.fate;
}

static void await_result(struct fixture *f, uint64_t id) {
  insert(f, (struct spec){.id = id, .state = TASK_AWAITING, .attempt = 1, .epoch = 7});
}

/* Sends task 1 as the settler says it. */
static void send(struct fixture *f, enum task_event event) {
  struct task_batch *batch = read_group(f, TASK_SCHEDULED, 0, "r");
  check_int(size_of(batch), 1);
  struct decision d = decide_on_sent(&batch->tasks[0], event);
  d.published_us = table_clock(&f->db);
  d.delay_us = event == EVENT_RETRY ? 0 : HOUR;
  check_int(settle(f, &d, 1), 1);
  check(!d.changed);
  release(batch);
}

static size_t kept(struct fixture *f) { return f->db.data.quarantine.count; }

static void results_finish_retry_and_bury(struct fixture *f) {
  for (uint64_t id = 1; id <= 3; id++)
    await_result(f, id);
  struct store_result r[] = {answer("m3", 1, RESULT_FAIL), answer("m1", 1, RESULT_DONE), answer("m2", 1, RESULT_RETRY)};
  apply(f, r, 3);
  for (int i = 0; i < 3; i++) {
    check_int(r[i].fate, RESULT_APPLIED);
    check_text(r[i].route, "r");
  }
  check(r[0].event == EVENT_DEAD && r[1].event == EVENT_DONE && r[2].event == EVENT_RETRY);
  check_text(row_of(f, 2), "scheduled|1|1|0|0");
  check_text(states_of(f), "scheduled");
  check_int(f->db.data.history.count, 2);
  check_int(f->db.data.attempts.count, 3);
}

static void the_same_result_again_is_a_duplicate(struct fixture *f) {
  await_result(f, 1);
  await_result(f, 2);
  struct store_result r[] = {answer("m1", 1, RESULT_DONE), answer("m2", 1, RESULT_RETRY)};
  apply(f, r, 2);
  apply(f, r, 2);
  check(r[0].fate == RESULT_DUPLICATE && r[1].fate == RESULT_DUPLICATE && !r[0].contradicts);
  check(!r[0].differs && !r[1].differs);
  check_int(kept(f), 0);
  struct store_result opposite = answer("m2", 1, RESULT_DONE);
  apply(f, &opposite, 1);
  check(opposite.fate == RESULT_DUPLICATE && opposite.contradicts && opposite.differs);
  check_int(kept(f), 1);
}

static void a_result_of_an_older_attempt(struct fixture *f) {
  await_result(f, 1);
  the_row(f, 1)->attempt = 3;
  check_int(say(f, 2, RESULT_RETRY), RESULT_STALE);
  check_int(say(f, 2, RESULT_DONE), RESULT_APPLIED);
  check_text(over_of(f), "done|3|0");
  check_text(line_of(f), "result|done|2");
}

static void a_result_after_the_end_is_late(struct fixture *f) {
  await_result(f, 1);
  struct decision dead = decide_on(f, 1, EVENT_DEAD);
  dead.keep_us = HOUR;
  check_int(settle(f, &dead, 1), 1);
  struct store_result r = answer("m1", 1, RESULT_DONE);
  apply(f, &r, 1);
  check(r.fate == RESULT_LATE && r.contradicts && !r.cancelled);
  check_int(kept(f), 1);
  check_int(say(f, 1, RESULT_FAIL), RESULT_LATE);
  check_int(kept(f), 1);
}

static void progress_keeps_a_task_alive(struct fixture *f) {
  await_result(f, 1);
  the_row(f, 1)->lease_until_us = table_clock(&f->db) + SECOND;
  the_row(f, 1)->timeout_ms = 60000;
  struct store_result r = answer("m1", 1, RESULT_PROGRESS);
  r.record.progress = 0.5;
  r.record.checkpoint = "page 7";
  r.record.checkpoint_len = 6;
  apply(f, &r, 1);
  check(r.fate == RESULT_APPLIED && r.event == EVENT_PROGRESS && r.extended);
  check(blob_is(the_row(f, 1)->text[ROW_CHECKPOINT], "page 7", 6));
  check(the_row(f, 1)->lease_until_us > table_clock(&f->db) + 50 * SECOND);
  check_text(row_of(f, 1), "awaiting|1|0|0|0");
  int64_t lease_until_us = the_row(f, 1)->lease_until_us += HOUR;
  r = answer("m1", 1, RESULT_PROGRESS);
  apply(f, &r, 1); /* never shortens, and forgets nothing */
  check(the_row(f, 1)->lease_until_us == lease_until_us && the_row(f, 1)->progress > 0.4);
}

static void progress_learns_of_a_cancellation(struct fixture *f) {
  const uint64_t id = 1;
  enum intervened changed;
  await_result(f, 1);
  ok(f, f->ops->intervene(f->ss, f->leases, INTERVENE_CANCEL, &id, 1, 0, "ann", "f", "", HOUR, &changed, &f->err));
  struct store_result r = answer("m1", 1, RESULT_PROGRESS);
  apply(f, &r, 1);
  check(r.fate == RESULT_LATE && r.cancelled);
}

static void what_fits_nothing_is_quarantined(struct fixture *f) {
  await_result(f, 1);
  struct store_result r[] = {answer("unknown", 1, RESULT_DONE), answer("m1", 9, RESULT_DONE),
                             answer("", 0, RESULT_DONE)};
  r[1].origin = "b";
  r[2].broken = "not JSON";
  r[2].origin = "c";
  for (int i = 0; i < 2; i++)
    apply(f, r, 3); /* received again after a crash: counted, not doubled */
  check(r[0].fate == RESULT_ORPHAN && r[1].fate == RESULT_ORPHAN && r[2].fate == RESULT_BROKEN);
  check_int(kept(f), 3);
  check_int(((const struct quarantined *)f->db.data.quarantine.at[0])->seen, 2);
  check_text(states_of(f), "awaiting");
  struct store_result told = answer("unknown", 1, RESULT_FAIL);
  told.replied = true;
  told.origin = "d";
  apply(f, &told, 1);
  check_int(kept(f), 3);
}

static void the_quarantine_is_bounded(struct fixture *f) {
  char text[300][12];
  for (int i = 0; i < 300; i++) {
    (void)snprintf(text[i], sizeof text[i], "%d", i);
    struct store_result junk = answer("", 0, RESULT_DONE);
    junk.broken = "no JSON";
    junk.body = (struct duebox_bytes){text[i], strlen(text[i])};
    apply(f, &junk, 1);
  }
  check_int(kept(f), 200);
}

static void results_pass_over_a_locked_row(struct fixture *f) {
  struct store_result r[4];
  for (uint64_t id = 1; id <= 3; id++)
    await_result(f, id);
  static const char *const names[] = {"m1", "m2", "m3", "m4"};
  for (int i = 0; i < 4; i++)
    r[i] = answer(names[i], 1, RESULT_DONE);
  hold(f, LOCK_ROW, 2);
  apply(f, r, 4);
  check(r[0].fate == RESULT_APPLIED && r[1].fate == RESULT_BUSY && r[2].fate == RESULT_APPLIED);
  check(r[3].fate == RESULT_ORPHAN && !r[1].early);
  apply(f, &r[1], 1);
  check_int(r[1].fate, RESULT_BUSY);
  let_go(f);
  apply(f, &r[1], 1);
  check_int(r[1].fate, RESULT_APPLIED);
}

static void results_pass_over_a_row_whose_index_entry_is_locked(struct fixture *f) {
  static const char *const names[] = {"m1", "m2", "m3", "m4", "m5"};
  struct store_result r[5];
  for (int i = 0; i < 5; i++) {
    await_result(f, (uint64_t)i + 1);
    r[i] = answer(names[i], 1, RESULT_DONE);
  }
  hold(f, LOCK_ENTRY, 4);
  apply(f, r, 5);
  for (int i = 0; i < 5; i++)
    check_int(r[i].fate, i == 3 ? RESULT_BUSY : RESULT_APPLIED);
}

static void a_result_that_is_refused_stops_no_other(struct fixture *f) {
  static const char *const names[] = {"m1", "m2", "m3", "m4", "m5"};
  struct store_result r[5];
  for (int i = 0; i < 5; i++) {
    await_result(f, (uint64_t)i + 1);
    r[i] = answer(names[i], 1, RESULT_DONE);
  }
  for (int i = 0; i < 5; i++)
    r[i].apart = i > 0;
  f->db.refuses = REFUSE_ROWS;
  f->db.refuses_id = 3;
  apply(f, r, 5);
  for (int i = 0; i < 5; i++)
    check_int(r[i].fate, i == 2 ? RESULT_BROKEN : RESULT_APPLIED);
  check(r[2].form == DECISION_FORMS && *r[2].refusal && kept(f) == 1);
}

/* For a while nothing of its route is tried among others. */
static void results_of_a_route_in_trouble_are_left(struct fixture *f) {
  static const char *const names[] = {"m1", "m2", "m3", "m4", "m5"};
  struct store_result r[5];
  for (int i = 0; i < 5; i++) {
    await_result(f, (uint64_t)i + 1);
    r[i] = answer(names[i], 1, RESULT_DONE);
  }
  f->db.refuses = REFUSE_ROWS;
  f->db.refuses_id = 2;
  apply(f, r, 4);
  check_int(r[0].fate, RESULT_APPLIED);
  check_int(r[1].fate, RESULT_BROKEN);
  apply(f, &r[4], 1);
  for (int i = 2; i < 5; i++) {
    check(r[i].fate == RESULT_BUSY && r[i].left);
    r[i].apart = true;
  }
  apply(f, &r[2], 3);
  for (int i = 2; i < 5; i++)
    check_int(r[i].fate, RESULT_APPLIED);
}

static void results_without_an_answer_are_applied_once(struct fixture *f) {
  for (int i = 0; i < 2; i++) {
    await_result(f, 1);
    await_result(f, 2);
    struct store_result r[] = {answer("m2", 1, RESULT_DONE), answer("m1", 1, RESULT_RETRY)};
    hit(f, i ? HIT_LOST_BEFORE : HIT_LOST_AFTER, true, 1);
    apply(f, r, 2);
    check(r[0].fate == RESULT_APPLIED && r[1].fate == RESULT_APPLIED && r[1].event == EVENT_RETRY);
    check_text(row_of(f, 1), "scheduled|1|1|0|0");
    check_int(f->db.data.attempts.count, 2);
    list_remove(&f->db.data.attempts, 1);
    list_remove(&f->db.data.attempts, 0);
    delete_row(f, 1);
  }
  check_int(kept(f), 0);
}

static void lock_the_row(struct table *db) {
  struct tx *tx = user_begin(db);
  check(table_lock(db, tx, LOCK_ROW, 1, false));
}

/* It happened all the same, and that is told now or later. */
static void an_unknown_commit_of_a_result_whose_row_is_locked(struct fixture *f) {
  insert(f, (struct spec){.id = 1});
  send(f, EVENT_PUBLISHED);
  struct store_result result = answer("m1", 1, RESULT_RETRY);
  f->db.hit_call = lock_the_row;
  hit(f, HIT_LOST_AFTER, true, 1);
  apply(f, &result, 1);
  check(result.fate == RESULT_BUSY && result.unknown);
  table_down(&f->db, 0);
  apply(f, &result, 1);
  check(result.fate == RESULT_APPLIED && result.event == EVENT_RETRY && !result.unknown);
  check_int(the_row(f, 1)->failures, 1);
}

/* --- changed and early --- */

static void a_change_of_an_awaiting_task(struct fixture *f) {
  static const enum result_status ends[] = {RESULT_DONE, RESULT_RETRY, RESULT_FAIL};
  for (int i = 0; i < 3; i++) {
    insert(f, (struct spec){.id = 1});
    send(f, EVENT_PUBLISHED);
    change(f, 1, "new");
    check_int(say(f, 1, RESULT_PROGRESS), RESULT_APPLIED);
    struct store_result result = answer("m1", 1, ends[i]);
    apply(f, &result, 1);
    check(result.fate == RESULT_APPLIED && result.event == EVENT_RETRY && result.changed);
    check_text(row_of(f, 1), "scheduled|1|0|0|1");
    check_text(line_of(f), "result|changed|1");
    check(say(f, 1, RESULT_DONE) != RESULT_APPLIED); /* delivered again */
    send(f, EVENT_PUBLISHED);
    check(say(f, 1, RESULT_DONE) != RESULT_APPLIED);
    check_int(say(f, 2, RESULT_DONE), RESULT_APPLIED);
    check_text(over_of(f), "done|2|0");
    while (f->db.data.attempts.count)
      list_remove(&f->db.data.attempts, 0);
  }
}

static void a_change_that_the_consumer_would_not_see(struct fixture *f) {
  insert(f, (struct spec){.id = 1, .due_us = -HOUR});
  send(f, EVENT_PUBLISHED);
  change(f, 1, "new"); /* and back */
  change(f, 1, "p");
  struct store_result result = answer("m1", 1, RESULT_DONE);
  apply(f, &result, 1);
  check(result.fate == RESULT_APPLIED && !result.changed);
  check_text(row_of(f, 1), "(none)");
}

static void a_late_success_of_what_the_task_was(struct fixture *f) {
  for (int changed = 0; changed < 2; changed++) {
    insert(f, (struct spec){.id = 1});
    send(f, EVENT_PUBLISHED);
    struct decision d = decide_on(f, 1, EVENT_RETRY); /* no result in time */
    d.attempt = 1;
    check_int(settle(f, &d, 1), 1);
    if (changed)
      change(f, 1, "new");
    check_int(say(f, 1, RESULT_DONE), changed ? RESULT_STALE : RESULT_APPLIED);
    if (changed)
      delete_row(f, 1);
    while (f->db.data.attempts.count)
      list_remove(&f->db.data.attempts, 0);
  }
}

static void a_result_that_overtakes_the_record_of_a_changed_task(struct fixture *f) {
  for (int after = 0; after < 2; after++) {
    insert(f, (struct spec){.id = 1});
    if (!after)
      change(f, 1, "new");
    struct task_batch *batch = read_group(f, TASK_SCHEDULED, 0, "r");
    struct decision d = decide_on_sent(&batch->tasks[0], EVENT_PUBLISHED);
    if (after)
      change(f, 1, "new");
    struct store_result result = answer("m1", 1, RESULT_DONE);
    for (int i = 0; i < 2; i++) {
      apply(f, &result, 1);
      check(result.fate == RESULT_BUSY && result.early);
    }
    check_int(settle(f, &d, 1), 1);
    apply(f, &result, 1);
    check_int(result.fate, after ? RESULT_STALE : RESULT_APPLIED);
    check_text(row_of(f, 1), after ? "scheduled|1|0|0|1" : "(none)");
    release(batch);
    if (after)
      delete_row(f, 1);
    while (f->db.data.attempts.count)
      list_remove(&f->db.data.attempts, 0);
  }
  check_int(kept(f), 0);
}

static void an_early_result_waits_for_so_long_and_no_longer(struct fixture *f) {
  insert(f, (struct spec){.id = 1});
  change(f, 1, "new");
  struct store_result result = answer("m1", 1, RESULT_DONE);
  apply(f, &result, 1);
  check_int(result.fate, RESULT_BUSY);
  result.waited = true;
  apply(f, &result, 1);
  check_int(result.fate, RESULT_ORPHAN);
  check_text(row_of(f, 1), "scheduled|0|0|0|0");
  check_int(kept(f), 1);
}

static void a_result_of_a_task_that_was_never_sent(struct fixture *f) {
  insert(f, (struct spec){.id = 1, .due_us = HOUR});
  struct store_result result = answer("m1", 1, RESULT_DONE);
  apply(f, &result, 1);
  check(result.fate == RESULT_ORPHAN && result.unsent);
  check_text(row_of(f, 1), "scheduled|0|0|0|0");
}

#define CASE(name)                                                                                                     \
  { #name, name }
const struct store_case result_cases[] = {
    CASE(results_finish_retry_and_bury),
    CASE(the_same_result_again_is_a_duplicate),
    CASE(a_result_of_an_older_attempt),
    CASE(a_result_after_the_end_is_late),
    CASE(progress_keeps_a_task_alive),
    CASE(progress_learns_of_a_cancellation),
    CASE(what_fits_nothing_is_quarantined),
    CASE(the_quarantine_is_bounded),
    CASE(results_pass_over_a_locked_row),
    CASE(results_pass_over_a_row_whose_index_entry_is_locked),
    CASE(a_result_that_is_refused_stops_no_other),
    CASE(results_of_a_route_in_trouble_are_left),
    CASE(results_without_an_answer_are_applied_once),
    CASE(an_unknown_commit_of_a_result_whose_row_is_locked),
    CASE(a_change_of_an_awaiting_task),
    CASE(a_change_that_the_consumer_would_not_see),
    CASE(a_late_success_of_what_the_task_was),
    CASE(a_result_that_overtakes_the_record_of_a_changed_task),
    CASE(an_early_result_waits_for_so_long_and_no_longer),
    CASE(a_result_of_a_task_that_was_never_sent),
    {NULL, NULL},
};
