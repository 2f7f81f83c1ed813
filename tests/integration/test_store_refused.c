/* SPDX-License-Identifier: MIT
 *
 * What the server refuses of one outcome must not stop the settling of the others: it is left out, a step at a time,
 * and the task is settled all the same. One that is refused in every form is the only one that waits.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "integration/store_fixture.h"
#include "outbox/session.h"

#define OPS f->store.ops
enum { N = 200, ODD = 77 }; /* ODD: the id of the one that is refused */

static struct decision *some(struct fixture *f, enum task_event event) {
  struct decision *d = calloc(N, sizeof *d);
  assert_non_null(d);
  sql(f,
      "INSERT INTO outbox (id, route, payload, shard, due_at, task_key) SELECT seq, 'r', 'x', seq %% %d, '2020-01-01', "
      "IF(seq = %d, 'odd', '') FROM seq_1_to_%d",
      SHARDS, ODD, N);
  for (uint64_t i = 0; i < N; i++)
    d[i] = (struct decision){.id = i + 1,
                             .message_id = message_id_of(f, i + 1),
                             .shard = (uint8_t)((i + 1) % SHARDS),
                             .event = event,
                             .attempt = 1,
                             .failures = 1,
                             .delay_us = INT64_C(3600000000),
                             .keep_us = INT64_C(3600000000),
                             .error = "no",
                             .log_attempt = true,
                             .head = event == EVENT_RETRY};
  return d;
}

static void refuse(struct fixture *f, const char *event, const char *table, const char *condition) {
  sql(f,
      "CREATE TRIGGER refuse BEFORE %s ON %s FOR EACH ROW BEGIN IF %s THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = "
      "'no thanks'; END IF; END",
      event, table, condition);
}

static void assert_all_but(struct decision *d, enum decision_form form) {
  for (size_t i = 0; i < N; i++) {
    assert_true(d[i].applied && !d[i].refused && !d[i].busy);
    assert_int_equal(d[i].form, d[i].id == ODD ? form : DECISION_WHOLE);
  }
}

/* A trigger of the application, a column that it added or a foreign key turns the alert of a dead task away. */
static void an_alert_that_is_refused_is_left_out(void **state) {
  struct fixture *f = *state;
  struct decision *d = some(f, EVENT_DEAD);
  refuse(f, "INSERT", "outbox", "NEW.route = 'ops.alert' AND NEW.task_key = 'odd'");
  for (size_t i = 0; i < N; i++)
    d[i].alert_route = "ops.alert";
  assert_int_equal(settle(f, d, N), N);
  assert_all_but(d, DECISION_NO_ALERT);
  assert_non_null(strstr(f->err.text, "no thanks"));
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox"), N - 1); /* alerts */
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_history WHERE state = 'dead' AND last_error = 'no'"), N);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_attempts"), N);
  free(d);
}

static void a_line_of_an_attempt_that_is_refused_is_left_out(void **state) {
  struct fixture *f = *state;
  struct decision *d = some(f, EVENT_RETRY);
  refuse(f, "INSERT", "outbox_attempts", "NEW.task_id = 77");
  assert_int_equal(settle(f, d, N), N);
  assert_all_but(d, DECISION_NO_LINES);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox WHERE attempt = 1"), N);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_attempts"), N - 1);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_heads"),
                   N); /* the others of its order_key wait for it all the same */
  free(d);
}

/* A table beside the outbox refuses one row of a failed task that others of its order_key wait for. */
static void a_head_that_is_refused_is_left_out(void **state) {
  struct fixture *f = *state;
  struct decision *d = some(f, EVENT_RETRY);
  refuse(f, "INSERT", "outbox_heads", "NEW.head_id = 77");
  assert_int_equal(settle(f, d, N), N);
  assert_all_but(d, DECISION_NO_HEAD);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox WHERE attempt = 1"), N);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_heads"), N - 1);
  free(d);
}

/* A right that was taken away from a running daemon, or a table: what needs it waits, whole, and nothing else does.
 * (One failed task of an order_key used to stop the settling of every route.) */
static void a_right_that_is_missing_costs_only_what_needs_it(void **state) {
  struct fixture *f = *state;
  struct decision *d = some(f, EVENT_DONE);
  for (size_t i = 0; i < N; i++) {
    d[i].log_attempt = false;
    d[i].keep_us = 0;
  }
  d[ODD - 1].event = EVENT_RETRY;
  d[ODD - 1].head = true;
  sql(f, "REVOKE INSERT ON %s.outbox_heads FROM 'duebox'@'%%'", f->database);
  assert_int_equal(settle(f, d, N), N - 1);
  for (size_t i = 0; i < N; i++)
    assert_true(d[i].refused == (d[i].id == ODD) && !d[i].busy);
  assert_non_null(strstr(f->err.text, "outbox_heads"));
  assert_int_equal(settle(f, &d[ODD - 1], 1), 0);
  assert_true(d[ODD - 1].refused);
  sql(f, "GRANT INSERT ON %s.outbox_heads TO 'duebox'@'%%'", f->database);
  assert_int_equal(settle(f, &d[ODD - 1], 1), 1);
  assert_int_equal(d[ODD - 1].form, DECISION_WHOLE);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_heads"), 1);
  free(d);
}

/* The server fixes the rights on a database when a session begins. One that was refused begins anew, though not each
 * time: the right may be missing for good. (It never did, and what was given on the database did not count.) */
static void a_right_on_the_database_counts_when_it_is_given(void **state) {
  struct fixture *f = *state;
  struct decision *d = some(f, EVENT_RETRY), *one = &d[ODD - 1];
  one->head = true;
  sql(f, "REVOKE INSERT ON %s.outbox_heads FROM 'duebox'@'%%'", f->database);
  f->ss->opened_us = INT64_MAX / 2; /* it is as new as can be */
  assert_int_equal(settle(f, one, 1), 0);
  assert_true(one->refused);
  assert_non_null(f->ss->conn);
  sql(f, "GRANT INSERT ON %s.* TO 'duebox'@'%%'", f->database);
  assert_int_equal(settle(f, one, 1), 0);
  assert_non_null(f->ss->conn);
  f->ss->opened_us = 0;
  assert_int_equal(settle(f, one, 1), 0);
  assert_null(f->ss->conn);
  assert_int_equal(settle(f, one, 1), 1);
  free(d);
}

static void a_done_task_whose_history_is_refused_is_done(void **state) {
  struct fixture *f = *state;
  struct decision *d = some(f, EVENT_DONE);
  refuse(f, "INSERT", "outbox_history", "NEW.id = 77");
  assert_int_equal(settle(f, d, N), N);
  assert_all_but(d, DECISION_NO_HISTORY);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_history"), N - 1);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox"), 0);
  free(d);
}

/* A dead task is not given up without its history: it alone waits, and is written when the server takes it. */
static void what_is_refused_in_every_form_waits_alone(void **state) {
  struct fixture *f = *state;
  struct decision *d = some(f, EVENT_DEAD);
  refuse(f, "INSERT", "outbox_history", "NEW.id = 77");
  assert_int_equal(settle(f, d, N), N - 1);
  for (size_t i = 0; i < N; i++)
    assert_true(d[i].refused == (d[i].id == ODD) && !d[i].busy);
  assert_non_null(strstr(f->err.text, "no thanks"));
  assert_int_equal(settle(f, &d[ODD - 1], 1), 0);
  assert_true(d[ODD - 1].refused);
  sql(f, "DROP TRIGGER refuse");
  assert_int_equal(settle(f, &d[ODD - 1], 1), 1);
  assert_int_equal(d[ODD - 1].form, DECISION_WHOLE);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_history"), N);
  free(d);
}

/* Where nothing at all can be written it is found out with few statements, and nobody is marked as settled. */
static void a_table_that_refuses_everything_is_not_asked_for_ever(void **state) {
  struct fixture *f = *state;
  struct decision *d = some(f, EVENT_DONE);
  refuse(f, "DELETE", "outbox", "TRUE");
  statements_sent();
  assert_int_equal(settle(f, d, N), 0);
  assert_in_range(statements_sent(), 1, 200);
  for (size_t i = 0; i < N; i++)
    assert_true(d[i].refused && !d[i].busy);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox"), N);
  sql(f, "DROP TRIGGER refuse");
  assert_int_equal(settle(f, d, N), N);
  free(d);
}

/* What a consumer answered is larger than the server takes in one packet. */
static void a_record_over_the_packet_limit_is_cut(void **state) {
  struct fixture *f = *state;
  enum { LARGE = 3 << 20 };
  struct decision *d = some(f, EVENT_DONE);
  char *large = calloc(1, LARGE);
  assert_non_null(large);
  memset(large, '7', LARGE - 1);
  struct result_record record = {
      .status = RESULT_DONE, .progress = -1, .result_json = large, .result_json_len = LARGE - 1};
  d[ODD - 1].record = &record;
  sql(f, "SET GLOBAL max_allowed_packet = 2097152");
  OPS->close(&f->ss);
  ok(f, OPS->open(f->store.self, "test", 0, &f->ss, &f->err));
  size_t applied = settle(f, d, N);
  sql(f, "SET GLOBAL max_allowed_packet = 16777216");
  assert_int_equal(applied, N);
  assert_all_but(d, DECISION_NO_TEXTS);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_history WHERE state = 'done'"), N);
  free(large);
  free(d);
}

static enum result_fate accept(void *ctx, const struct result_row *row, struct result_record *record,
                               struct decision *out) {
  *out = (struct decision){.event = EVENT_DONE, .attempt = 1, .keep_us = INT64_C(3600000000)};
  return RESULT_APPLIED;
}

/* n tasks that await their results, and a `done` for each. */
static struct store_result *awaited(struct fixture *f, size_t n) {
  struct store_result *r = calloc(n, sizeof *r);
  assert_non_null(r);
  free(some(f, EVENT_DONE));
  sql(f, "UPDATE outbox SET message_id = CONCAT('m', id), state = 'awaiting', attempt = 1, lease_until = '2040-01-01'");
  for (size_t i = 0; i < n; i++) {
    r[i] = (struct store_result){.record = {.status = RESULT_DONE, .attempt = 1, .progress = -1},
                                 .apart = true,
                                 .source = "s",
                                 .origin = "o",
                                 .body = {"{}", 2}};
    snprintf(r[i].record.message_id, sizeof r[i].record.message_id, "m%zu", i + 1);
  }
  return r;
}

/* The same for results: the others are applied, and one that cannot be stored is where people see it. */
static void a_result_that_is_refused_stops_no_other(void **state) {
  struct fixture *f = *state;
  struct store_result *r = awaited(f, N);
  refuse(f, "DELETE", "outbox", "OLD.id = 77");
  ok(f, OPS->settle_results(f->ss, r, N, accept, NULL, &f->err));
  for (int i = 0; i < N; i++)
    assert_int_equal(r[i].fate, i + 1 == ODD ? RESULT_BROKEN : RESULT_APPLIED);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_history"), N - 1);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_quarantine WHERE reason LIKE '%%refuses%%no thanks%%'"), 1);
  struct store_result next = r[ODD - 1];
  next.apart = false;
  next.fate = RESULT_APPLIED;
  next.broken = NULL;
  ok(f, OPS->settle_results(f->ss, &next, 1, accept, NULL, &f->err));
  assert_true(next.fate == RESULT_BUSY && next.left); /* nothing of its route is tried among others for a while */
  free(r);
}

/* Where the quarantine takes nothing either, the results are kept for later by whoever gave them. */
static void results_are_not_lost_where_the_server_refuses_every_write(void **state) {
  enum { FEW = 3 };
  struct fixture *f = *state;
  struct store_result *r = awaited(f, FEW);
  refuse(f, "DELETE", "outbox", "TRUE");
  sql(f, "CREATE TRIGGER refuse_more BEFORE INSERT ON outbox_quarantine FOR EACH ROW SIGNAL SQLSTATE '45000' "
         "SET MESSAGE_TEXT = 'no thanks'");
  assert_int_equal(OPS->settle_results(f->ss, r, FEW, accept, NULL, &f->err), STORE_DOWN);
  assert_non_null(strstr(f->err.text, "no thanks"));
  sql(f, "DROP TRIGGER refuse");
  sql(f, "DROP TRIGGER refuse_more");
  ok(f, OPS->settle_results(f->ss, r, FEW, accept, NULL, &f->err));
  for (int i = 0; i < FEW; i++)
    assert_int_equal(r[i].fate, RESULT_APPLIED);
  free(r);
}

/* A text that the quarantine does not take is left out of it. */
static void a_refused_result_is_in_the_quarantine_without_its_text(void **state) {
  struct fixture *f = *state;
  struct store_result r = {.broken = "no record", .source = "s", .origin = "o", .body = {"odd", 3}};
  refuse(f, "INSERT", "outbox_quarantine", "NEW.body = 'odd'");
  ok(f, OPS->settle_results(f->ss, &r, 1, accept, NULL, &f->err));
  assert_int_equal(r.fate, RESULT_BROKEN);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_quarantine WHERE body = ''"), 1);
}

/* The history has no partition for anything that ends now. */
static void no_partition(struct fixture *f) {
  sql(f, "ALTER TABLE outbox_history PARTITION BY RANGE COLUMNS (keep_until) (PARTITION past VALUES LESS THAN "
         "('2020-01-01'))");
}

/* INSERT IGNORE passes over a row that has no partition, and says nothing. That was taken for a change by somebody
 * else and tried again five times, with growing pauses: half a second for each row, while all other routes waited. */
static void a_row_that_no_partition_takes_is_not_tried_again_and_again(void **state) {
  struct fixture *f = *state;
  struct decision *d = some(f, EVENT_DONE);
  no_partition(f);
  statements_sent();
  assert_int_equal(settle(f, d, 1), 1);
  assert_int_equal(d->form, DECISION_NO_HISTORY);
  assert_non_null(strstr(f->err.text, "partition"));
  assert_in_range(statements_sent(), 1, 20);
  struct decision *dead = &d[1];
  dead->event = EVENT_DEAD;
  assert_int_equal(settle(f, dead, 1), 0);
  assert_true(dead->refused && !dead->busy);
  assert_in_range(statements_sent(), 1, 20);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox"), N - 1);
  free(d);
}

/* A trigger may fail with the error that a guard of ours fails with: 1690, as its sum is out of range. */
static void a_trigger_that_overflows_is_a_refusal(void **state) {
  struct fixture *f = *state;
  struct decision *d = some(f, EVENT_DONE);
  sql(f, "CREATE TRIGGER refuse BEFORE INSERT ON outbox_history FOR EACH ROW SIGNAL SQLSTATE '22003' SET MYSQL_ERRNO = "
         "1690, MESSAGE_TEXT = 'out of range'");
  statements_sent();
  assert_int_equal(settle(f, d, 1), 1);
  assert_int_equal(d->form, DECISION_NO_HISTORY);
  assert_in_range(statements_sent(), 1, 40);
  free(d);
}

/* The same for what a consumer answered: it counts, and its stream goes on. */
static void a_result_whose_history_no_partition_takes_is_applied(void **state) {
  enum { FEW = 3 };
  struct fixture *f = *state;
  struct store_result *r = awaited(f, FEW);
  no_partition(f);
  statements_sent();
  ok(f, OPS->settle_results(f->ss, r, FEW, accept, NULL, &f->err));
  for (int i = 0; i < FEW; i++)
    assert_int_equal(r[i].fate, RESULT_APPLIED);
  assert_in_range(statements_sent(), 1, 200);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox"), N - FEW);
  free(r);
}

/* A route's history is refused: one of its rows is found, the others of it are left, and those of all other routes are
 * settled at once. (Each refused row was tried by itself, in every form, as long as halving went on.) */
static void what_is_of_another_kin_is_settled_at_once(void **state) {
  struct fixture *f = *state;
  struct decision *d = some(f, EVENT_DONE);
  refuse(f, "INSERT", "outbox_history", "MOD(NEW.id, 2) = 0");
  for (size_t i = 0; i < N; i++)
    d[i].kin = d[i].id % 2 ? (const void *)f : (const void *)d;
  statements_sent();
  assert_int_equal(settle(f, d, N), N / 2 + 1);
  assert_in_range(statements_sent(), 1, 60);
  for (size_t i = 0; i < N; i++) {
    bool first = d[i].id == 2, other = d[i].id % 2;
    assert_true(d[i].applied == (first || other) && d[i].left == !d[i].applied && d[i].busy == d[i].left);
    assert_int_equal(d[i].form, first ? DECISION_NO_HISTORY : DECISION_WHOLE);
  }
  free(d);
}

/* What is tried of a row by itself counts as well: one call does not go on for ever. */
static void one_call_tries_so_many_alone_and_leaves_the_others(void **state) {
  struct fixture *f = *state;
  struct decision *d = some(f, EVENT_DONE);
  size_t left = 0, refused = 0;
  refuse(f, "INSERT", "outbox_history", "MOD(NEW.id, 2) = 0");
  statements_sent();
  size_t applied = settle(f, d, N);
  assert_in_range(statements_sent(), 1, 200);
  for (size_t i = 0; i < N; i++) {
    left += d[i].left && d[i].busy;
    refused += d[i].refused;
  }
  if (applied == 0 || left == 0 || refused || applied + left != N)
    fail_msg("applied %zu, left %zu, refused %zu", applied, left, refused);
  while (applied < N) {
    for (size_t i = 0; i < N; i++)
      d[i].busy = false;
    size_t more = settle(f, d, N); /* what is done finds no row */
    assert_true(more > 0);
    applied += more;
  }
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_history"), N / 2);
  free(d);
}

/* What is known to be refused is not tried again. */
static void less_is_written_at_once_where_that_is_asked_for(void **state) {
  struct fixture *f = *state;
  struct decision *d = some(f, EVENT_DONE);
  no_partition(f);
  for (size_t i = 0; i < N; i++)
    d[i].least = DECISION_NO_HISTORY;
  statements_sent();
  assert_int_equal(settle(f, d, N), N);
  assert_in_range(statements_sent(), 1, 6);
  assert_int_equal(d[0].form, DECISION_NO_HISTORY);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox"), 0);
  free(d);
}

/* The history has less room for a key than the outbox, which a client may fill with its CHECKs switched off. Nothing
 * else of it is lost: the texts, the line of its attempt and its alert were left out before. */
static void what_the_history_has_no_room_for_is_cut_alone(void **state) {
  struct fixture *f = *state;
  struct decision *d = some(f, EVENT_DEAD);
  sql(f, "ALTER TABLE outbox_history MODIFY task_key VARCHAR(2) NOT NULL");
  for (size_t i = 0; i < N; i++)
    d[i].alert_route = "ops.alert";
  assert_int_equal(settle(f, d, N), N);
  assert_all_but(d, DECISION_CUT);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox"), N); /* alerts */
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_attempts WHERE error = 'no'"), N);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_history WHERE last_error = 'no'"), N);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_history WHERE task_key = 'od'"), 1);
  free(d);
}

/* Those that are known not to fit are written by the statement of all of them, and no other goes by that: what of it is
 * cut is found out. */
static void what_is_known_not_to_fit_is_cut_together(void **state) {
  struct fixture *f = *state;
  struct decision *d = some(f, EVENT_DONE);
  sql(f, "ALTER TABLE outbox_history MODIFY task_key VARCHAR(2) NOT NULL");
  sql(f, "UPDATE outbox SET task_key = 'odd' WHERE id %% 2 = 0");
  for (size_t i = 0; i < N; i++) {
    d[i].least = d[i].id % 2 == 0 ? DECISION_CUT : DECISION_WHOLE;
    d[i].error = NULL;
  }
  statements_sent();
  assert_int_equal(settle(f, d, N), N);
  assert_in_range(statements_sent(), 1, 150); /* of which most find out the one whose key nobody knows */
  for (size_t i = 0; i < N; i++)
    assert_int_equal(d[i].form, d[i].id % 2 == 0 || d[i].id == ODD ? DECISION_CUT : DECISION_WHOLE);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_history WHERE task_key = 'od'"), N / 2 + 1);
  free(d);
}

/* A message id that got past the CHECKs is cut in the line of its attempt, too. */
static void what_the_attempts_have_no_room_for_is_cut(void **state) {
  struct fixture *f = *state;
  struct decision *d = some(f, EVENT_RETRY);
  sql(f, "ALTER TABLE outbox_attempts MODIFY route VARCHAR(2) CHARACTER SET ascii COLLATE ascii_bin NOT NULL");
  sql(f, "UPDATE outbox SET route = 'odd' WHERE id = %d", ODD);
  assert_int_equal(settle(f, d, N), N);
  assert_all_but(d, DECISION_CUT);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_attempts"), N);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_attempts WHERE route = 'od'"), 1);
  free(d);
}

/* Who may INSERT drives the counter of row ids to its end, and for up to a minute there is no next one. What dies
 * meanwhile was settled without its alert, for good. */
static void an_alert_needs_no_next_row_id(void **state) {
  enum { FAR = 61 };
  struct fixture *f = *state;
  struct decision *d = some(f, EVENT_DEAD);
  sql(f, "START TRANSACTION");
  sql(f, "INSERT INTO outbox (id, route, payload) VALUES (18446744073709551615, 'r', 'x')");
  sql(f, "ROLLBACK");
  assert_int_equal(sql_error(f, "INSERT INTO outbox (route, payload) VALUES ('r', 'x')"), 1467);
  for (size_t i = 0; i < N; i++)
    d[i].alert_route = "ops.alert";
  for (size_t applied = 0, more = 1; applied < N; applied += more) {
    more = settle(f, d, N); /* so many alone and no more in one call; what is done finds no row */
    assert_true(more > 0);
    for (size_t i = 0; i < N; i++) {
      assert_true(!d[i].refused && (!d[i].applied || d[i].form == DECISION_OWN_ID));
      d[i].busy = false;
    }
  }
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox WHERE route = 'ops.alert' AND id > %d AND id < 1 << %d", N, FAR),
                   N);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_history WHERE last_error = 'no'"), N);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_attempts"), N);
  free(d);
}

/* Where that is known all of them are written together, beside those that die without an alert. */
static void alerts_with_ids_of_their_own_are_written_together(void **state) {
  struct fixture *f = *state;
  struct decision *d = some(f, EVENT_DEAD);
  for (size_t i = 0; i < N; i++) {
    d[i].least = DECISION_OWN_ID;
    d[i].alert_route = i % 2 ? "ops.alert" : NULL;
  }
  statements_sent();
  assert_int_equal(settle(f, d, N), N);
  assert_in_range(statements_sent(), 1, 20);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox WHERE route = 'ops.alert' AND id > %d", N), N / 2);
  free(d);
}

/* The server refuses the history of all tasks of a route: after some the next results are applied without it at once,
 * and those of other routes do not wait while each is found out. One now and then is tried whole. */
static void results_whose_history_is_refused_time_and_again_are_applied_at_once(void **state) {
  struct fixture *f = *state;
  struct store_result *r = awaited(f, N);
  size_t done = 0, calls = 0;
  refuse(f, "INSERT", "outbox_history", "TRUE");
  while (done < N && calls++ < N) {
    size_t first = done, count = N - done < 20 ? N - done : 20;
    ok(f, OPS->settle_results(f->ss, &r[first], count, accept, NULL, &f->err));
    while (done < first + count && r[done].fate == RESULT_APPLIED)
      assert_int_equal(r[done++].form, DECISION_NO_HISTORY);
    if (done < 100)
      statements_sent();
  }
  assert_int_equal(done, N);
  assert_in_range(statements_sent(), 1, 200);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox"), 0);
  free(r);
}

/* Results of two routes. Of one the server refuses some: when the first is found, the others of that route are left,
 * and those of the other are applied by the same call; the next call does not try any of them among others. What each
 * refused one costs used to be paid in the batches of all. */
static void results_of_a_route_in_trouble_are_left(void **state) {
  struct fixture *f = *state;
  struct store_result *r = awaited(f, N);
  size_t applied = 0, left = 0;
  sql(f, "UPDATE outbox SET route = 'other' WHERE MOD(id, 2) = 1");
  refuse(f, "INSERT", "outbox_history", "NEW.route <> 'other' AND MOD(NEW.id, 4) = 0");
  for (size_t i = 0; i < N; i++)
    r[i].apart = false;
  statements_sent();
  ok(f, OPS->settle_results(f->ss, r, N / 2, accept, NULL, &f->err));
  assert_in_range(statements_sent(), 1, 300);
  for (size_t i = 0; i < N / 2; i++) {
    bool other = i % 2 == 0;
    assert_true(!other || r[i].fate == RESULT_APPLIED);
    assert_true((r[i].fate == RESULT_APPLIED) != (r[i].fate == RESULT_BUSY && r[i].left && !r[i].behind));
    assert_true(r[i].fate == RESULT_APPLIED || strcmp(r[i].route, "other") != 0);
  }
  ok(f, OPS->settle_results(f->ss, r + N / 2, N / 2, accept, NULL, &f->err));
  assert_in_range(statements_sent(), 1, 30);
  for (size_t i = 0; i < N; i++) {
    left += r[i].left;
    r[i].apart = true;
  }
  assert_in_range(left, N / 2 - N / 4, N / 2 - 1);
  while (applied < N) { /* in turns of their own each is applied, and those that are not refused with their history */
    applied = 0;
    for (size_t i = 0; i < N; i++)
      if (r[i].left)
        ok(f, OPS->settle_results(f->ss, &r[i], 1, accept, NULL, &f->err));
    for (size_t i = 0; i < N; i++)
      applied += r[i].fate == RESULT_APPLIED;
  }
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox"), 0);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_history"), N - N / 4);
  free(r);
}

int main(int argc, char **argv) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, store_setup, store_teardown)
  const struct CMUnitTest tests[] = {
      TEST(an_alert_that_is_refused_is_left_out),
      TEST(a_line_of_an_attempt_that_is_refused_is_left_out),
      TEST(a_head_that_is_refused_is_left_out),
      TEST(a_right_that_is_missing_costs_only_what_needs_it),
      TEST(a_right_on_the_database_counts_when_it_is_given),
      TEST(a_done_task_whose_history_is_refused_is_done),
      TEST(what_is_refused_in_every_form_waits_alone),
      TEST(a_table_that_refuses_everything_is_not_asked_for_ever),
      TEST(a_record_over_the_packet_limit_is_cut),
      TEST(a_result_that_is_refused_stops_no_other),
      TEST(results_are_not_lost_where_the_server_refuses_every_write),
      TEST(a_refused_result_is_in_the_quarantine_without_its_text),
      TEST(a_row_that_no_partition_takes_is_not_tried_again_and_again),
      TEST(a_trigger_that_overflows_is_a_refusal),
      TEST(a_result_whose_history_no_partition_takes_is_applied),
      TEST(results_whose_history_is_refused_time_and_again_are_applied_at_once),
      TEST(results_of_a_route_in_trouble_are_left),
      TEST(what_is_of_another_kin_is_settled_at_once),
      TEST(one_call_tries_so_many_alone_and_leaves_the_others),
      TEST(less_is_written_at_once_where_that_is_asked_for),
      TEST(what_the_history_has_no_room_for_is_cut_alone),
      TEST(what_is_known_not_to_fit_is_cut_together),
      TEST(what_the_attempts_have_no_room_for_is_cut),
      TEST(an_alert_needs_no_next_row_id),
      TEST(alerts_with_ids_of_their_own_are_written_together),
  };
  return store_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
