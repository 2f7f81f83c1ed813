/* SPDX-License-Identifier: MIT
 *
 * A statement of somebody who may only INSERT, which inserts many rows or takes long, holds the lock of the next row id
 * on MariaDB: what needs one waits for it as for any lock, and nothing of it is left out.
 */
#include <stdio.h>
#include <string.h>

#include "integration/store_fixture.h"
#include "outbox/session.h"

#define OPS f->store.ops
enum { N = 2 };

/* Somebody's statement, which runs until end(). */
static struct db_conn *holder;

/* Whether there is such a lock: MySQL has none where it is as it comes. */
static bool locks(struct fixture *f) { return ask(f, "SELECT @@innodb_autoinc_lock_mode") < 2; }

static void hold(struct fixture *f, const char *statement) {
  assert_true(db_open(&f->config, DB_DAEMON, "holder", &holder, &f->err));
  starts(f, holder, statement);
  while (ask(f, "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE STATE = 'User sleep'") == 0)
    ;
}

static void end(struct fixture *f) {
  if (!holder)
    return;
  sql(f, "KILL CONNECTION %llu", (unsigned long long)db_thread(holder));
  while (ask(f, "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID = %llu",
             (unsigned long long)db_thread(holder)))
    ;
  db_close(&holder);
}

#define SLOWLY(columns, values)                                                                                        \
  "INSERT INTO " columns " SELECT " values " FROM (SELECT 1 AS n UNION ALL SELECT 2) AS numbers WHERE n = 1 OR "       \
  "SLEEP(3600) = 0"
#define SLOW_TASKS SLOWLY("outbox (route, payload, due_at)", "'slow', 'x', '2199-01-01'")

static void dead(struct fixture *f, struct decision d[N]) {
  two_rows(f, d, EVENT_DEAD);
  for (int i = 0; i < N; i++) {
    d[i].alert_route = "ops.alert";
    d[i].error = "no";
    d[i].log_attempt = true;
  }
}

static void assert_waiting(const struct decision d[N]) {
  for (int i = 0; i < N; i++)
    assert_true(d[i].busy && !d[i].applied && !d[i].refused && !d[i].left);
}

/* Alert, texts and line of each task are there, and the form is what it should be. */
static void assert_written(struct fixture *f, const struct decision d[N], enum decision_form form) {
  for (int i = 0; i < N; i++) {
    assert_true(d[i].applied && !d[i].busy && !d[i].refused);
    assert_int_equal(d[i].form, form);
  }
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox WHERE route = 'ops.alert'"), N);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_history WHERE last_error = 'no'"), N);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_attempts WHERE error = 'no'"), N);
}

static void an_alert_waits_for_the_next_id(void **state) {
  struct fixture *f = *state;
  struct decision d[N];
  dead(f, d);
  hold(f, SLOW_TASKS);
  if (locks(f)) {
    assert_int_equal(settle(f, d, N), 0);
    assert_waiting(d);
  }
  end(f);
  assert_int_equal(settle(f, d, N), N);
  assert_written(f, d, DECISION_WHOLE);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox WHERE id > 1000"), 0);
}

/* A lock is no reason to choose an id: that moves the counter of everybody. */
static void an_alert_that_waits_is_given_no_id_of_its_own(void **state) {
  struct fixture *f = *state;
  struct decision d[N];
  dead(f, d);
  hold(f, SLOW_TASKS);
  fault_call(f, "SELECT IF(TRUE", end); /* it is free just then */
  if (locks(f)) {
    assert_int_equal(settle(f, d, N), 0);
    assert_waiting(d);
  }
  end(f);
  assert_int_equal(settle(f, d, N), N);
  assert_written(f, d, DECISION_WHOLE);
  fault_arm(f, FAULT_NONE, "", 0, 0);
}

/* It is given again at once: whoever gives it twice a second waits for nothing, and leaves nothing out. */
static void an_alert_that_waits_is_tried_without_waiting(void **state) {
  struct fixture *f = *state;
  struct decision d[N];
  dead(f, d);
  hold(f, SLOW_TASKS);
  for (int i = 0; i < 3 && locks(f); i++) {
    session_met_lock(f->ss);
    assert_int_equal(settle(f, d, N), 0);
    assert_waiting(d);
  }
  end(f);
  assert_int_equal(settle(f, d, N), N);
  assert_written(f, d, DECISION_WHOLE);
}

static enum result_fate die(void *ctx, const struct result_row *row, struct result_record *record,
                            struct decision *out) {
  *out = (struct decision){.event = EVENT_DEAD,
                           .attempt = 1,
                           .failures = 1,
                           .keep_us = INT64_C(3600000000),
                           .error = "no",
                           .alert_route = "ops.alert",
                           .log_attempt = true};
  return RESULT_APPLIED;
}

static void a_result_waits_for_the_id_of_its_alert(void **state) {
  struct fixture *f = *state;
  struct decision d[N];
  struct store_result r[N] = {0};
  two_rows(f, d, EVENT_DEAD);
  sql(f, "UPDATE outbox SET state = 'awaiting', attempt = 1, lease_until = '2040-01-01'");
  for (int i = 0; i < N; i++) {
    r[i] = (struct store_result){.record = {.status = RESULT_FAIL, .attempt = 1, .progress = -1},
                                 .source = "s",
                                 .origin = "o",
                                 .body = {"{}", 2}};
    snprintf(r[i].record.message_id, sizeof r[i].record.message_id, "m%d", i + 1);
  }
  hold(f, SLOW_TASKS);
  if (locks(f)) {
    ok(f, OPS->settle_results(f->ss, r, N, die, NULL, &f->err));
    for (int i = 0; i < N; i++)
      assert_true(r[i].fate == RESULT_BUSY && !r[i].left);
  }
  end(f);
  ok(f, OPS->settle_results(f->ss, r, N, die, NULL, &f->err));
  for (int i = 0; i < N; i++)
    assert_true(r[i].fate == RESULT_APPLIED && r[i].form == DECISION_WHOLE);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox WHERE route = 'ops.alert' AND id < 1000"), N);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_attempts WHERE error = 'no'"), N);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_quarantine"), 0);
}

/* The statement that holds the lock has driven the counter to its end, too. */
static void an_alert_waits_for_the_lock_and_needs_no_next_id_then(void **state) {
  struct fixture *f = *state;
  struct decision d[N];
  dead(f, d);
  hold(f, SLOWLY("outbox (id, route, payload, due_at)", "18446744073709551615 - n, 'slow', 'x', '2199-01-01'"));
  if (locks(f)) {
    assert_int_equal(settle(f, d, N), 0);
    assert_waiting(d);
  }
  end(f);
  assert_int_equal(sql_error(f, "INSERT INTO outbox (route, payload) VALUES ('r', 'x')"), 1467);
  assert_int_equal(settle(f, d, N), N);
  assert_written(f, d, DECISION_OWN_ID);
}

/* Nobody knows which of the two it was: neither is taken for it. */
static void whether_it_was_a_lock_is_asked_again_on_a_new_connection(void **state) {
  struct fixture *f = *state;
  struct decision d[N];
  dead(f, d);
  hold(f, SLOW_TASKS);
  session_met_lock(f->ss);
  fault_arm(f, FAULT_LOSE_ANSWER, "SELECT AUTO_INCREMENT", 0, 1);
  if (locks(f)) {
    assert_int_equal(settle(f, d, N), 0);
    assert_waiting(d);
  }
  end(f);
  fault_arm(f, FAULT_NONE, "", 0, 0);
  assert_int_equal(settle(f, d, N), N);
  assert_written(f, d, DECISION_WHOLE);
}

/* A test that failed has left it. */
static int teardown(void **state) {
  end(*state);
  return store_teardown(state);
}

int main(int argc, char **argv) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, store_setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(an_alert_waits_for_the_next_id),
      TEST(an_alert_that_waits_is_given_no_id_of_its_own),
      TEST(an_alert_that_waits_is_tried_without_waiting),
      TEST(a_result_waits_for_the_id_of_its_alert),
      TEST(an_alert_waits_for_the_lock_and_needs_no_next_id_then),
      TEST(whether_it_was_a_lock_is_asked_again_on_a_new_connection),
  };
  return store_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
