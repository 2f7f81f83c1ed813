/* SPDX-License-Identifier: MIT
 *
 * Plain SQL changes a task that has left: whatever a consumer says of the old content, the new one is sent (P1, and no
 * documented change is ever lost). With the rules of the engine, on a real server.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "integration/store_answers.h"

/* It changes while its result is awaited: whatever ends the attempt, the row is due again as it is now. */
static void a_change_of_an_awaiting_task(void **state) {
  struct fixture *f = *state;
  static const enum result_status ends[] = {RESULT_DONE, RESULT_RETRY, RESULT_FAIL};
  for (int i = 0; i < 3; i++) {
    ONE_TASK;
    sql(f, "UPDATE outbox SET max_attempts = 7"); /* before it is read: that is what is sent */
    send(f, EVENT_PUBLISHED);
    sql(f, "UPDATE outbox SET payload = 'new'");
    assert_int_equal(say(f, 1, RESULT_PROGRESS), RESULT_APPLIED);
    assert_string_equal(row(f), "awaiting|new|1|0");
    struct store_result result = answer(1, ends[i]);
    assert_int_equal(apply(f, &result), RESULT_APPLIED);
    assert_int_equal(result.event, EVENT_RETRY);
    assert_string_equal(row(f), "scheduled|new|1|1");
    assert_string_equal(ask_text(f, "SELECT CONCAT(attempt, kind, outcome) FROM outbox_attempts"), "1resultchanged");
    assert_int_not_equal(say(f, 1, RESULT_DONE), RESULT_APPLIED); /* delivered again */
    struct task_batch *batch = read_group(f, TASK_SCHEDULED, 0, "r");
    assert_int_equal(batch->tasks[0].revision, 1); /* what the consumer is told */
    release(batch);
    send(f, EVENT_PUBLISHED);
    assert_int_not_equal(say(f, 1, RESULT_DONE), RESULT_APPLIED);
    assert_string_equal(row(f), "awaiting|new|2|1");
    assert_int_equal(say(f, 2, RESULT_DONE), RESULT_APPLIED);
    assert_string_equal(ask_text(f, "SELECT CONCAT_WS('|', state, payload, attempt, revision) FROM outbox_history"),
                        "done|new|2|1");
    sql(f, "DELETE FROM outbox_history");
    sql(f, "DELETE FROM outbox_attempts");
  }
}

/* What is no part of the message, a note or the wish to move it, makes no other message: without a fault nothing is
 * sent twice (P4), and the result counts. */
static void a_change_that_the_consumer_would_not_see(void **state) {
  struct fixture *f = *state;
  static const char *const changes[] = {
      "priority = 9",
      "max_attempts = 9",
      "timeout_ms = 9",
      "expires_at = '2040-01-01'",
      "dedup_key = 'd'",
      "last_error = 'seen by ann'",
      "move_to_host = 'h'",
      "move_to_shard = 1",
      "due_at = due_at - INTERVAL 1 HOUR",
      "headers = '{}', priority = 4",
  };
  for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
    OLD_TASK;
    send(f, EVENT_PUBLISHED);
    sql(f, "UPDATE outbox SET payload = 'new'"); /* and back */
    sql(f, "UPDATE outbox SET payload = 'old', %s", changes[i]);
    struct store_result result = answer(1, RESULT_DONE);
    if (apply(f, &result) != RESULT_APPLIED || result.changed || strcmp(row(f), "(none)") != 0)
      fail_msg("%s: fate %d, %s", changes[i], (int)result.fate, row(f));
    sql(f, "DELETE FROM outbox_attempts");
    sql(f, "DELETE FROM outbox_history");
  }
}

static void a_change_that_the_consumer_would_see(void **state) {
  struct fixture *f = *state;
  static const char *const changes[] = {
      "headers = '{\"a\":\"b\"}'",
      "task_key = 'k'",
      "order_key = 'k'",
      "payload = 'old '",
      "due_at = UTC_TIMESTAMP(6) + INTERVAL 1 HOUR",
      "task_key = 'a|1|b'",
      "payload = ''",
  };
  for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
    ONE_TASK;
    send(f, EVENT_PUBLISHED);
    sql(f, "UPDATE outbox SET %s", changes[i]);
    struct store_result result = answer(1, RESULT_DONE);
    if (apply(f, &result) != RESULT_APPLIED || !result.changed ||
        ask(f, "SELECT COUNT(*) FROM outbox WHERE state = 'scheduled' AND revision = 1") != 1)
      fail_msg("%s: fate %d, %s", changes[i], (int)result.fate, row(f));
    sql(f, "DELETE FROM outbox");
    sql(f, "DELETE FROM outbox_attempts");
  }
}

/* It was changed, then read and sent: its success counts however late it is, also when it was taken for failed. */
static void a_late_success_of_a_task_that_was_changed_before(void **state) {
  struct fixture *f = *state;
  static const enum task_event ends[] = {EVENT_RETRY, EVENT_PUBLISHED};
  for (int i = 0; i < 2; i++) {
    ONE_TASK;
    sql(f, "UPDATE outbox SET payload = 'new'");
    send(f, ends[i]);
    assert_int_equal(say(f, 1, RESULT_DONE), RESULT_APPLIED);
    assert_string_equal(row(f), "(none)");
    assert_int_equal(ask(f, "SELECT revision FROM outbox_history"), 0);
    sql(f, "DELETE FROM outbox_attempts");
    sql(f, "DELETE FROM outbox_history");
  }
}

/* What was changed while it waited for its retry, and not sent yet since its destination is down, is still to be sent:
 * a success of what it was does not end it (P1). */
static void a_late_success_and_a_change_that_is_still_to_be_sent(void **state) {
  struct fixture *f = *state;
  ONE_TASK;
  send(f, EVENT_RETRY);
  sql(f, "UPDATE outbox SET payload = 'new', due_at = '2020-01-01'");
  struct task_batch *batch = read_group(f, TASK_SCHEDULED, 0, "r");
  struct decision d = decide_on_sent(&batch->tasks[0], EVENT_DEFER);
  d.sent = NULL;
  d.attempt = d.attempt_from;
  assert_int_equal(settle(f, &d, 1), 1);
  release(batch);
  assert_int_equal(say(f, 1, RESULT_DONE), RESULT_STALE);
  assert_string_equal(row(f), "scheduled|new|1|0");
  sql(f, "UPDATE outbox SET payload = 'old'"); /* the change is taken back */
  assert_int_equal(say(f, 1, RESULT_DONE), RESULT_APPLIED);
  assert_string_equal(row(f), "(none)");
}

/* People put it off, or change it, and no result comes: that holds, also where a time-out would have ended the task. */
static void no_result_of_a_task_that_was_put_off(void **state) {
  struct fixture *f = *state;
  static const enum task_event events[] = {EVENT_RETRY, EVENT_DEAD, EVENT_EXPIRE};
  for (size_t i = 0; i < 6; i++) {
    OLD_TASK;
    send(f, EVENT_PUBLISHED);
    sql(f, i % 2 ? "UPDATE outbox SET payload = 'new'" : "UPDATE outbox SET due_at = '2040-01-01'");
    struct decision d = decide_on(f, 1, events[i / 2]);
    d.attempt = 1;
    assert_int_equal(settle(f, &d, 1), 1);
    assert_string_equal(ask_text(f, "SELECT CONCAT_WS('|', state, payload, revision, YEAR(next_at)) FROM outbox"),
                        i % 2 ? "scheduled|new|1|2019" : "scheduled|old|1|2040");
    assert_string_equal(ask_text(f, "SELECT CONCAT(attempt, outcome) FROM outbox_attempts"), "1changed");
    sql(f, "DELETE outbox, outbox_attempts FROM outbox JOIN outbox_attempts");
  }
}

/* No result came, and the content is another by now: consumers are told so. A late success of what it was changes
 * nothing; where the change was none of the content, it ends the task. */
static void no_result_of_a_task_that_was_changed(void **state) {
  struct fixture *f = *state;
  for (int content = 0; content < 2; content++) {
    OLD_TASK;
    send(f, EVENT_PUBLISHED);
    sql(f, content ? "UPDATE outbox SET payload = 'new'" : "UPDATE outbox SET priority = 9");
    struct decision d = decide_on(f, 1, EVENT_RETRY);
    d.attempt = 1;
    assert_int_equal(settle(f, &d, 1), 1);
    assert_string_equal(row(f), content ? "scheduled|new|1|1" : "scheduled|old|1|0");
    assert_int_equal(say(f, 1, RESULT_DONE), content ? RESULT_STALE : RESULT_APPLIED);
    sql(f, "DELETE FROM outbox");
    sql(f, "DELETE FROM outbox_attempts");
    sql(f, "DELETE FROM outbox_history");
  }
}

static void a_result_of_an_open_call_whose_task_was_changed(void **state) {
  struct fixture *f = *state;
  ONE_TASK;
  struct task_batch *batch = claim(f);
  struct decision d = decide_on_sent(&batch->tasks[0], EVENT_PUBLISHED);
  sql(f, "UPDATE outbox SET payload = 'new'");
  assert_int_equal(say(f, 1, RESULT_DONE), RESULT_BUSY);
  assert_int_equal(settle(f, &d, 1), 1);
  assert_true(d.changed);
  assert_string_equal(row(f), "scheduled|new|1|1");
  assert_int_equal(say(f, 1, RESULT_DONE), RESULT_STALE);
  release(batch);
  batch = claim(f);
  d = decide_on_sent(&batch->tasks[0], EVENT_PUBLISHED);
  assert_int_equal(settle(f, &d, 1), 1);
  assert_int_equal(say(f, 1, RESULT_DONE), RESULT_STALE);
  assert_string_equal(row(f), "awaiting|new|2|1");
  release(batch);
}

/* A success of an attempt that was taken for failed calls its retry off, unless there is another content by now. */
static void a_late_success_of_what_the_task_was(void **state) {
  struct fixture *f = *state;
  for (int changed = 0; changed < 2; changed++) {
    ONE_TASK;
    send(f, EVENT_PUBLISHED);
    struct decision d = decide_on(f, 1, EVENT_RETRY); /* no result in time */
    d.attempt = 1;
    assert_int_equal(settle(f, &d, 1), 1);
    if (changed)
      sql(f, "UPDATE outbox SET payload = 'new'");
    assert_int_equal(say(f, 1, RESULT_DONE), changed ? RESULT_STALE : RESULT_APPLIED);
    if (changed) {
      send(f, EVENT_PUBLISHED); /* of an older attempt nobody knows what it was about */
      assert_int_equal(say(f, 1, RESULT_DONE), RESULT_STALE);
      assert_int_equal(say(f, 2, RESULT_DONE), RESULT_APPLIED);
    }
    assert_string_equal(row(f), "(none)");
    sql(f, "DELETE FROM outbox_attempts");
    sql(f, "DELETE FROM outbox_history");
  }
}

/* A row that another version of duebox published before the upgrade: nobody knows, and it is taken as it is. */
static void a_task_that_was_awaited_before_the_upgrade(void **state) {
  struct fixture *f = *state;
  ROW("(id, route, payload, shard, message_id, state, attempt, lease_until) VALUES (1, 'r', 'p', 0, 'm1', 'awaiting', "
      "1, '2035-01-01')");
  sql(f, "UPDATE outbox SET changed_at = '2021-01-01 00:00:00.5'");
  assert_int_equal(say(f, 1, RESULT_DONE), RESULT_APPLIED);
  assert_string_equal(row(f), "(none)");
}

/* A claim that was recorded and never sent does not stay one because its row was changed meanwhile (P1: it would, until
 * its lease ends). It is no copy, so it is no other revision. */
static void a_changed_claim_that_was_never_sent_goes_back(void **state) {
  struct fixture *f = *state;
  static const enum task_event events[] = {EVENT_RELEASE, EVENT_DEFER, EVENT_EXPIRE, EVENT_DEAD};
  for (int i = 0; i < 4; i++) {
    ONE_TASK;
    struct task_batch *batch = claim(f);
    struct decision d = decide_on_sent(&batch->tasks[0], events[i]);
    d.sent = NULL;
    if (events[i] == EVENT_RELEASE) /* as the settler decides */
      d.changed_at.len = 0;
    sql(f, "UPDATE outbox SET payload = 'new', due_at = '2020-01-01'");
    assert_int_equal(settle(f, &d, 1), 1);
    assert_string_equal(row(f), "scheduled|new|1|0");
    assert_string_equal(ask_text(f, "SELECT CONCAT(due_at, COALESCE(lease_until, '-')) FROM outbox"),
                        "2020-01-01 00:00:00.000000-");
    assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_attempts"), 0);
    release(batch);
    sql(f, "DELETE FROM outbox");
  }
}

/* Expiry and an earlier due time are nothing that another copy would have: what left is all that was asked for. */
static void what_left_already_is_not_sent_again(void **state) {
  struct fixture *f = *state;
  static const char *const changes[] = {"expires_at = '2040-01-01'", "due_at = due_at - INTERVAL 1 HOUR"};
  for (int i = 0; i < 2; i++) {
    ONE_TASK;
    struct task_batch *batch = read_group(f, TASK_SCHEDULED, 0, "r");
    struct decision d = decide_on_sent(&batch->tasks[0], EVENT_DONE);
    sql(f, "UPDATE outbox SET %s", changes[i]);
    assert_int_equal(settle(f, &d, 1), 1);
    assert_false(d.changed);
    assert_string_equal(row(f), "(none)");
    release(batch);
  }
}

/* --- rows that are gone --- */

static const char *lines(struct fixture *f) {
  return ask_text(f, "SELECT GROUP_CONCAT(message_id, attempt, kind, outcome, task_id, route ORDER BY seq) "
                     "FROM outbox_attempts");
}

/* A DELETE that commits while a copy of the task is at its destination answers with a row: what had left already is to
 * be found out afterwards. */
static void a_task_that_is_removed_while_its_copy_is_out(void **state) {
  struct fixture *f = *state;
  static const struct {
    enum task_event event;
    const char *line;
  } rows[] = {{EVENT_DONE, "m11successsent_then_removed1r"},
              {EVENT_PUBLISHED, "m11successsent_then_removed1r"},
              {EVENT_RETRY, "m11failuresent_then_removed1r"},
              {EVENT_DEAD, "m11failuresent_then_removed1r"}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    ONE_TASK;
    struct task_batch *batch = read_group(f, TASK_SCHEDULED, 0, "r");
    struct decision d = decide_on_sent(&batch->tasks[0], rows[i].event);
    sql(f, "DELETE FROM outbox");
    for (int again = 0; again < 2; again++) {
      assert_int_equal(settle(f, &d, 1), 0);
      assert_true(d.gone && !d.busy && !d.refused);
      assert_string_equal(lines(f), rows[i].line);
    }
    release(batch);
    sql(f, "DELETE FROM outbox_attempts");
  }
}

#define KEPT                                                                                                           \
  "id, message_id, route, payload, headers, task_key, due_at, priority, order_key, dedup_key, target_host, shard, "    \
  "created_at"
/* Nor does it help to keep the row in the history, as sql/examples/cancel_kept.sql does: what is kept is the task
 * before the copy that has left, and does not tell of that. */
static void a_task_that_is_moved_to_the_history_while_its_copy_is_out(void **state) {
  struct fixture *f = *state;
  ONE_TASK;
  struct task_batch *batch = read_group(f, TASK_SCHEDULED, 0, "r");
  struct decision d = decide_on_sent(&batch->tasks[0], EVENT_DONE);
  sql(f, "INSERT INTO outbox_history (" KEPT ", state, attempt, failures, recoveries, finished_at, keep_until) "
         "SELECT " KEPT ", 'cancelled', attempt, failures, recoveries, UTC_TIMESTAMP(6), "
         "UTC_TIMESTAMP(6) + INTERVAL 30 DAY FROM outbox");
  sql(f, "DELETE FROM outbox");
  for (int again = 0; again < 2; again++) {
    assert_int_equal(settle(f, &d, 1), 0);
    assert_true(d.gone && !d.busy && !d.refused);
    assert_string_equal(lines(f), "m11successsent_then_removed1r");
  }
  release(batch);
}

static void some_of_a_batch_are_removed(void **state) {
  struct fixture *f = *state;
  enum { ROWS = 20 };
  struct decision d[ROWS];
  sql(f, "INSERT INTO outbox (id, route, payload, shard) SELECT seq, 'r', 'p', 0 FROM seq_1_to_20");
  struct task_batch *batch = read_group(f, TASK_SCHEDULED, 0, "r");
  for (int i = 0; i < ROWS; i++)
    d[i] = decide_on_sent(&batch->tasks[i], EVENT_DONE);
  d[3].sent = NULL; /* no copy of it has left */
  sql(f, "DELETE FROM outbox WHERE id IN (4, 5, 6)");
  assert_int_equal(settle(f, d, ROWS), ROWS - 3);
  assert_string_equal(ask_text(f, "SELECT GROUP_CONCAT(task_id, outcome ORDER BY task_id) FROM outbox_attempts"),
                      "5sent_then_removed,6sent_then_removed");
  assert_string_equal(row(f), "(none)");
  release(batch);
}

/* What a result or a command has ended was not removed: that is told by what it left. */
static void what_has_ended_was_not_removed(void **state) {
  struct fixture *f = *state;
  for (int how = 0; how < 2; how++) {
    const uint64_t id = 1;
    enum intervened changed = INTERVENED_NOT;
    ONE_TASK;
    struct task_batch *batch = read_group(f, TASK_SCHEDULED, 0, "r");
    struct decision d = decide_on_sent(&batch->tasks[0], EVENT_PUBLISHED);
    if (how == 0) {
      assert_int_equal(say_without_room(f, 1, RESULT_DONE), RESULT_APPLIED);
    } else {
      assert_int_equal(settle(f, &d, 1), 1); /* a row that is in flight is no command's to end */
      ok(f, OPS->intervene(f->ss, f->leases, INTERVENE_CANCEL, &id, 1, 0, "ann", "m", "", 1000000, &changed, &f->err));
      assert_true(changed);
    }
    sql(f, "DELETE FROM outbox_history WHERE state = 'done'"); /* a route without history */
    assert_int_equal(settle(f, &d, 1), 0);
    assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_attempts WHERE outcome = 'sent_then_removed'"), 0);
    release(batch);
    sql(f, "DELETE FROM outbox_attempts");
    sql(f, "DELETE FROM outbox_history");
  }
}

/* How often it may be tried is what the row says when an attempt has ended: what was read with it decided, and a task
 * died of a limit that people had raised, or was sent again though they had lowered it. */
static void a_limit_that_was_changed_meanwhile_decides(void **state) {
  struct fixture *f = *state;
  static const enum task_event events[] = {EVENT_DEAD, EVENT_RETRY, EVENT_DONE};
  for (int i = 0; i < 3; i++) {
    ONE_TASK;
    struct task_batch *batch = read_group(f, TASK_SCHEDULED, 0, "r");
    struct decision d = decide_on_sent(&batch->tasks[0], events[i]);
    sql(f, "UPDATE outbox SET max_attempts = 7");
    if (events[i] == EVENT_DONE) {
      assert_int_equal(settle(f, &d, 1), 1);
      assert_string_equal(row(f), "(none)");
    } else {
      assert_int_equal(settle(f, &d, 1), 0);
      assert_true(d.busy && d.again);
      assert_int_equal(d.max_attempts, 7);
      assert_string_equal(ask_text(f, "SELECT CONCAT_WS('|', state, attempt) FROM outbox"), "scheduled|0");
      batch->tasks[0].max_attempts = 7;
      assert_int_equal(settle(f, &d, 1), 1);
      assert_true(d.applied && !d.busy && !d.again);
    }
    release(batch);
    sql(f, "DELETE FROM outbox");
    sql(f, "DELETE FROM outbox_history");
    sql(f, "DELETE FROM outbox_attempts");
  }
}

/* Nor what a commit of ours has ended that got no answer. */
static void what_an_unknown_commit_has_ended_was_not_removed(void **state) {
  struct fixture *f = *state;
  ONE_TASK;
  struct task_batch *batch = read_group(f, TASK_SCHEDULED, 0, "r");
  struct decision d = decide_on_sent(&batch->tasks[0], EVENT_DONE);
  fault_arm(f, FAULT_LOSE_ANSWER, "DELETE", 0, 1);
  assert_int_equal(settle(f, &d, 1), 1);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_attempts"), 0);
  release(batch);
}

/* The line is not worth a task's standing still: it is left out where the server refuses it. */
static void a_line_of_a_removed_task_that_is_refused(void **state) {
  struct fixture *f = *state;
  ONE_TASK;
  struct task_batch *batch = read_group(f, TASK_SCHEDULED, 0, "r");
  struct decision d = decide_on_sent(&batch->tasks[0], EVENT_DONE);
  sql(f, "DELETE FROM outbox");
  sql(f,
      "CREATE TRIGGER refuse BEFORE INSERT ON outbox_attempts FOR EACH ROW SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = "
      "'no'");
  assert_int_equal(settle(f, &d, 1), 0);
  assert_false(d.busy || d.refused);
  release(batch);
}

/* --- a COMMIT without an answer --- */

static void a_batch_with_a_deferred_row(struct fixture *f, struct decision d[2], struct task_batch **batch) {
  ROW("(id, route, payload, shard) VALUES (1, 'r', 'old', 0), (2, 'r', 'old', 0)");
  *batch = read_group(f, TASK_SCHEDULED, 0, "r");
  assert_int_equal((*batch)->count, 2);
  d[0] = decide_on_sent(&(*batch)->tasks[0], EVENT_DONE);
  d[1] = decide_on_sent(&(*batch)->tasks[1], EVENT_DEFER); /* its target is suspended: no attempt, no other state */
  d[1].sent = NULL;
  d[1].attempt = d[1].attempt_from;
}

/* A deferred row looks as before: whether the commit happened is told by the others (P7: counted once, as it was). */
static void a_deferred_row_does_not_tell_whether_a_commit_happened(void **state) {
  struct fixture *f = *state;
  for (int happened = 0; happened < 2; happened++) {
    struct decision d[2];
    struct task_batch *batch;
    a_batch_with_a_deferred_row(f, d, &batch);
    fault_arm(f, happened ? FAULT_LOSE_ANSWER : FAULT_KILL_BEFORE, "COMMIT", 0, 1);
    assert_int_equal(settle(f, d, 2), 2);
    assert_true(d[0].applied && d[1].applied && !d[0].changed && !d[1].changed);
    assert_string_equal(row(f), "scheduled|old|0|0");
    assert_int_equal(ask(f, "SELECT due_at > UTC_TIMESTAMP(6) + INTERVAL 1 MINUTE FROM outbox"), 1);
    release(batch);
    sql(f, "DELETE FROM outbox");
  }
}

static void lock_the_row(struct fixture *f) {
  other(f, "START TRANSACTION");
  other(f, "SELECT id FROM outbox FOR UPDATE");
}
static void lock_it_then(struct fixture *f) { fault_call(f, "WHERE message_id IN", lock_the_row); }

/* A result whose commit got no answer, and whose row is somebody else's when it is given again: it happened all the
 * same, and the route's counters and the sender are to be told so, now or later. */
static void an_unknown_commit_of_a_result_whose_row_is_locked(void **state) {
  struct fixture *f = *state;
  ONE_TASK;
  send(f, EVENT_PUBLISHED);
  struct store_result result = answer(1, RESULT_RETRY);
  fault_call(f, "COMMIT", lock_it_then);
  fault_arm(f, FAULT_LOSE_ANSWER, "COMMIT", 0, 1);
  enum result_fate fate = apply(f, &result);
  other(f, "COMMIT"); /* before anything fails: the teardown would wait for it */
  assert_int_equal(fate, RESULT_BUSY);
  assert_true(result.unknown);
  assert_int_equal(apply(f, &result), RESULT_APPLIED);
  assert_int_equal(result.event, EVENT_RETRY);
  assert_false(result.unknown);
  assert_int_equal(ask(f, "SELECT failures FROM outbox"), 1);
}

int main(int argc, char **argv) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, store_setup, store_teardown)
  const struct CMUnitTest tests[] = {
      TEST(a_change_of_an_awaiting_task),
      TEST(a_change_that_the_consumer_would_not_see),
      TEST(a_change_that_the_consumer_would_see),
      TEST(a_late_success_of_a_task_that_was_changed_before),
      TEST(a_late_success_and_a_change_that_is_still_to_be_sent),
      TEST(no_result_of_a_task_that_was_changed),
      TEST(no_result_of_a_task_that_was_put_off),
      TEST(a_result_of_an_open_call_whose_task_was_changed),
      TEST(a_late_success_of_what_the_task_was),
      TEST(a_task_that_was_awaited_before_the_upgrade),
      TEST(a_changed_claim_that_was_never_sent_goes_back),
      TEST(what_left_already_is_not_sent_again),
      TEST(a_task_that_is_removed_while_its_copy_is_out),
      TEST(a_task_that_is_moved_to_the_history_while_its_copy_is_out),
      TEST(some_of_a_batch_are_removed),
      TEST(what_has_ended_was_not_removed),
      TEST(what_an_unknown_commit_has_ended_was_not_removed),
      TEST(a_limit_that_was_changed_meanwhile_decides),
      TEST(a_line_of_a_removed_task_that_is_refused),
      TEST(a_deferred_row_does_not_tell_whether_a_commit_happened),
      TEST(an_unknown_commit_of_a_result_whose_row_is_locked),
  };
  return store_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
