/* SPDX-License-Identifier: MIT
 *
 * Results that come before it is recorded what was sent, or of what was never sent: a task ends by a result of its own
 * (P1), and none is lost that a consumer has told in time (P7). With the rules of the engine, on a real server.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "integration/store_answers.h"

/* A result that overtakes the record of its publishing waits for it where the row was changed: only who sent it knows
 * whether that was before or after. */
static void a_result_that_overtakes_the_record_of_a_changed_task(void **state) {
  struct fixture *f = *state;
  for (int after = 0; after < 2; after++) {
    ONE_TASK;
    if (!after)
      sql(f, "UPDATE outbox SET payload = 'new'");
    struct task_batch *batch = read_group(f, TASK_SCHEDULED, 0, "r");
    struct decision d = decide_on_sent(&batch->tasks[0], EVENT_PUBLISHED);
    if (after)
      sql(f, "UPDATE outbox SET payload = 'new'");
    struct store_result result = answer(1, RESULT_DONE);
    for (int i = 0; i < 2; i++) {
      assert_int_equal(apply(f, &result), RESULT_BUSY);
      assert_true(result.early);
    }
    assert_int_equal(settle(f, &d, 1), 1);
    assert_int_equal(apply(f, &result), after ? RESULT_STALE : RESULT_APPLIED);
    assert_string_equal(row(f), after ? "scheduled|new|1|1" : "(none)");
    release(batch);
    sql(f, "DELETE FROM outbox");
    sql(f, "DELETE FROM outbox_attempts");
  }
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_quarantine"), 0);
}

/* A callback whose URL names the version that is there waits for nothing: its consumer may be in the middle of the call
 * that is to be recorded, and would wait for itself. */
static void a_callback_that_overtakes_the_record_of_a_changed_task(void **state) {
  struct fixture *f = *state;
  for (int after = 0; after < 2; after++) {
    ONE_TASK;
    sql(f, "UPDATE outbox SET payload = 'new'");
    struct task_batch *batch = read_group(f, TASK_SCHEDULED, 0, "r");
    struct store_result result = answer(1, RESULT_DONE);
    result.record.row = 1;
    result.record.version = task_version(&batch->tasks[0].changed_at);
    result.record.current_only = true;
    assert_true(result.record.version > 0);
    if (after)
      sql(f, "UPDATE outbox SET payload = 'newer'");
    assert_int_equal(apply(f, &result), after ? RESULT_BUSY : RESULT_APPLIED);
    assert_string_equal(row(f), after ? "scheduled|newer|0|0" : "(none)");
    release(batch);
    sql(f, "DELETE FROM outbox_attempts");
  }
}

/* Nobody records it any more, since its daemon died: the result is kept where people see it, and the task is sent. */
static void an_early_result_waits_for_so_long_and_no_longer(void **state) {
  struct fixture *f = *state;
  ONE_TASK;
  sql(f, "UPDATE outbox SET payload = 'new'");
  struct store_result result = answer(1, RESULT_DONE);
  assert_int_equal(apply(f, &result), RESULT_BUSY);
  result.waited = true;
  assert_int_equal(apply(f, &result), RESULT_ORPHAN);
  assert_string_equal(row(f), "scheduled|new|0|0");
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_quarantine WHERE reason LIKE '%%was changed%%'"), 1);
}

/* A task that is due and not in flight, behind a backlog or on a paused route, may have the result of an earlier one
 * that used its message id: it waits until somebody records that it was sent, and is kept where nobody does (P1). */
static void a_result_of_what_may_be_in_flight(void **state) {
  struct fixture *f = *state;
  for (int sent = 0; sent < 2; sent++) {
    ONE_TASK;
    struct task_batch *batch = read_group(f, TASK_SCHEDULED, 0, "r");
    struct store_result result = answer(1, RESULT_DONE);
    assert_int_equal(apply(f, &result), RESULT_BUSY);
    assert_true(result.early);
    struct decision d = decide_on_sent(&batch->tasks[0], EVENT_PUBLISHED);
    assert_int_equal(sent ? settle(f, &d, 1) : 1, 1);
    result.waited = !sent;
    assert_int_equal(apply(f, &result), sent ? RESULT_APPLIED : RESULT_ORPHAN);
    assert_string_equal(row(f), sent ? "(none)" : "scheduled|old|0|0");
    assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_quarantine WHERE reason LIKE '%%never handed out%%'"), 1);
    release(batch);
    sql(f, "DELETE FROM outbox");
  }
}

/* A result of an untouched task that must not wait is applied at once, whatever the time zone of the session that
 * inserted it. */
static void a_result_of_an_untouched_task_waits_for_nothing(void **state) {
  struct fixture *f = *state;
  static const char *const zones[] = {"+00:00", "+05:45", "-09:30", "+13:00"};
  for (int i = 0; i < 4; i++) {
    sql(f, "SET time_zone = '%s'", zones[i]);
    ONE_TASK;
    assert_int_equal(say_without_room(f, 1, RESULT_RETRY), RESULT_APPLIED);
    sql(f, "UPDATE outbox SET due_at = '2020-01-01', changed_at = changed_at");
    assert_int_equal(say_without_room(f, 2, RESULT_DONE), RESULT_APPLIED);
    assert_string_equal(row(f), "(none)");
    ONE_TASK; /* and while the call of a recorded claim is open */
    struct task_batch *batch = claim(f);
    assert_int_equal(say(f, 1, RESULT_DONE), RESULT_APPLIED);
    release(batch);
    sql(f, "DELETE FROM outbox_attempts");
    sql(f, "DELETE FROM outbox_history");
  }
}

/* A message id that was used before, and an old record of it that comes again: the new task, which is due later, stays
 * as it is (P1: it would end unsent), and the record is kept where people see it. */
static void a_result_of_a_task_that_was_never_sent(void **state) {
  struct fixture *f = *state;
  static const enum result_status all[] = {RESULT_DONE, RESULT_RETRY, RESULT_FAIL, RESULT_PROGRESS};
  ROW("(id, route, payload, shard, message_id, delay_ms) VALUES (1, 'r', 'p', 0, 'm1', 3600000)");
  for (int i = 0; i < 4; i++) {
    struct store_result result = answer(1, all[i]);
    result.record.checkpoint = "forged";
    result.record.checkpoint_len = 6;
    assert_int_equal(apply(f, &result), RESULT_ORPHAN);
    assert_true(result.unsent);
  }
  assert_string_equal(ask_text(f, "SELECT CONCAT_WS('|', state, attempt, COALESCE(checkpoint, '-')) FROM outbox"),
                      "scheduled|0|-");
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_history"), 0);
  assert_true(ask(f, "SELECT COUNT(*) FROM outbox_quarantine WHERE reason LIKE '%%never handed out%%'") > 0);
  sql(f, "UPDATE outbox SET due_at = '2020-01-01', changed_at = created_at"); /* now it may be in flight */
  assert_int_equal(say(f, 1, RESULT_DONE), RESULT_BUSY);
}

/* A framework replies with the correlation id alone, and often before it is recorded that its message left. What it
 * says of a second attempt is not taken for the first one's once more: the task would be sent a third time. */
static void a_result_without_attempt_is_of_the_one_that_may_be_out(void **state) {
  struct fixture *f = *state;
  static const struct {
    const char *due;
    bool answered; /* the attempt that the row counts has had its result */
    enum result_status status;
    enum result_fate fate;
    uint32_t meant;
  } cases[] = {
      {"2020-01-01", true, RESULT_DONE, RESULT_BUSY, 2},      {"2020-01-01", true, RESULT_FAIL, RESULT_BUSY, 2},
      {"2020-01-01", true, RESULT_PROGRESS, RESULT_BUSY, 2},  {"2020-01-01", false, RESULT_RETRY, RESULT_BUSY, 2},
      {"2020-01-01", false, RESULT_DONE, RESULT_APPLIED, 1},  {"2035-01-01", true, RESULT_DONE, RESULT_DUPLICATE, 1},
      {"2035-01-01", true, RESULT_RETRY, RESULT_DUPLICATE, 1}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    ROW("(id, route, payload, shard, message_id, due_at, attempt) VALUES (1, 'r', 'p', 0, 'm1', '%s', 1)",
        cases[i].due);
    if (cases[i].answered)
      sql(f, "INSERT INTO outbox_attempts (message_id, attempt, task_id, route, kind, outcome, due_at, finished_at) "
             "VALUES ('m1', 1, 1, 'r', 'result', 'retry', UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))");
    struct store_result result = answer(0, cases[i].status);
    assert_int_equal(apply(f, &result), cases[i].fate);
    assert_int_equal(result.record.attempt, cases[i].meant);
    sql(f, "DELETE FROM outbox");
    sql(f, "DELETE FROM outbox_attempts");
  }
}

/* Whoever may INSERT may choose the row id of a task of their own, and let it have the message id first. */
static void a_result_of_an_earlier_task_with_a_far_id_is_none_of_this_one(void **state) {
  struct fixture *f = *state;
  ONE_TASK;
  sql(f, "UPDATE outbox SET attempt = 1, failures = 1, changed_at = created_at, due_at = UTC_TIMESTAMP(6) + INTERVAL 1 "
         "HOUR");
  sql(f, "INSERT INTO outbox_attempts (message_id, attempt, task_id, route, kind, outcome, due_at, finished_at) VALUES "
         "('m1', 1, 4611686018427387905, 'r', 'result', 'retry', UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))");
  assert_int_equal(say(f, 1, RESULT_DONE), RESULT_APPLIED);
}

int main(int argc, char **argv) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, store_setup, store_teardown)
  const struct CMUnitTest tests[] = {
      TEST(a_result_that_overtakes_the_record_of_a_changed_task),
      TEST(a_callback_that_overtakes_the_record_of_a_changed_task),
      TEST(an_early_result_waits_for_so_long_and_no_longer),
      TEST(a_result_of_what_may_be_in_flight),
      TEST(a_result_of_an_untouched_task_waits_for_nothing),
      TEST(a_result_of_a_task_that_was_never_sent),
      TEST(a_result_without_attempt_is_of_the_one_that_may_be_out),
      TEST(a_result_of_an_earlier_task_with_a_far_id_is_none_of_this_one),
  };
  return store_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
