/* SPDX-License-Identifier: MIT
 *
 * The store when somebody holds a whole table beside that of the tasks: what does not need it goes on.
 */
#include <stdio.h>
#include <time.h>

#include "integration/store_fixture.h"
#include "outbox/session.h"

#define OPS f->store.ops

/* Somebody has locked a table beside that of the tasks, to dump it say, or to alter it. What does not need it is
 * settled all the same (P8), and the rest is found out without a wait for each row. */
static void a_locked_table_holds_up_what_needs_it_and_nothing_else(void **state) {
  struct fixture *f = *state;
  enum { ROWS = 64, NEEDY = 16, WAITS_S = 25 };
  static const char *const tables[] = {"outbox_history WRITE", "outbox_attempts READ", "outbox_heads WRITE"};
  struct decision d[ROWS];
  for (size_t t = 0; t < 3; t++) {
    sql(f, "DELETE FROM outbox");
    sql(f, "INSERT INTO outbox (id, route, payload, shard, order_key) SELECT seq, 'r', 'p', 0, seq FROM seq_1_to_%d",
        ROWS);
    for (uint64_t id = 1; id <= ROWS; id++) {
      bool needy = id % (ROWS / NEEDY) == 0;
      struct decision *it = &d[id - 1];
      *it = decide_on(f, id, t == 2 && needy ? EVENT_RETRY : EVENT_DONE);
      it->keep_us = t == 0 && needy ? 1000000 : 0;
      it->log_attempt = t == 1 && needy;
      it->head = t == 2 && needy;
      it->delay_us = 3600000000;
    }
    other(f, "LOCK TABLES %s", tables[t]);
    time_t began = time(NULL);
    size_t applied = settle(f, d, ROWS);
    time_t took = time(NULL) - began;
    assert_int_equal(applied, ROWS - NEEDY);
    assert_in_range(took, 0, WAITS_S); /* a few waits of a second, and not one for each half of each half */
    for (size_t i = 0; i < ROWS; i++)
      assert_int_equal(d[i].busy, (i + 1) % (ROWS / NEEDY) == 0);
    statements_sent();
    f->ss->tables_asked_us = INT64_MAX / 2; /* it is not yet time to ask again, where that would cost a second */
    assert_int_equal(settle(f, d, ROWS), 0);
    other(f, "UNLOCK TABLES");
    f->ss->tables_asked_us = 0;
    assert_int_equal(settle(f, d, ROWS), NEEDY);
  }
}

/* A task for this host, one for another that is to move, and one that waits for its order_key; in SHARD_BOUND, and a
 * waiting one in a shard of ours. */
static void put_bound_tasks(struct fixture *f) {
  sql(f, "DELETE FROM outbox");
  sql(f, "INSERT INTO outbox (id, route, payload, target_host) VALUES (1, 'r', 'p', 'h'), (2, 'r', 'p', 'nowhere')");
  sql(f, "INSERT INTO outbox (id, route, payload, target_host, state, order_key) VALUES "
         "(3, 'r', 'p', 'h', 'blocked', 'k')");
  sql(f, "INSERT INTO outbox (id, route, payload, shard, state, order_key) VALUES (4, 'r', 'p', 0, 'blocked', 'k4')");
  sql(f, "UPDATE outbox SET move_to_host = 'h', order_key = 'k2' WHERE id = 2");
}

static uint32_t unblocked(struct fixture *f, uint8_t shard) {
  const struct shard_lease bound = {.shard = SHARD_BOUND, .epoch = 1};
  uint32_t moved;
  bool all;
  ok(f, OPS->unblock(f->ss, shard == SHARD_BOUND ? &bound : &f->leases[shard], "h",
                     &(struct store_unblock){"r", true, 10}, &(struct store_walk){0}, &moved, &all, &f->err));
  assert_true(all || moved == 0);
  return moved;
}

/* The same for what is read: who lives, and which task heads its key, cannot be asked then. Only bound tasks that
 * depend on it wait. It stopped every route of the daemon. */
static void reading_goes_on_while_a_table_is_locked(void **state) {
  struct fixture *f = *state;
  static const struct {
    const char *table;
    bool knows_heads;
  } tables[] = {{"outbox_instances", true}, {"outbox_heads", false}};
  for (size_t t = 0; t < 2; t++) {
    struct task_batch *batch;
    put_bound_tasks(f);
    other(f, "LOCK TABLES %s WRITE", tables[t].table);
    assert_int_equal(count_bound(f, "h"), 1);
    f->ss->tables_asked_us = INT64_MAX / 2; /* as above */
    int64_t began = ask(f, "SELECT UNIX_TIMESTAMP()");
    assert_int_equal(count_bound(f, "h"), 1);
    assert_int_equal(unblocked(f, SHARD_BOUND), 0);
    enum store_status claims = OPS->lost_bound_claims(f->ss, "h", 60000, 10, &batch, &f->err);
    assert_int_equal(claims, tables[t].knows_heads ? STORE_BUSY : STORE_OK);
    ok(f, OPS->lost_claims(f->ss, f->leases, 1, 10, &batch, &f->err));
    assert_int_equal(unblocked(f, 0), tables[t].knows_heads);
    assert_in_range(ask(f, "SELECT UNIX_TIMESTAMP()") - began, 0, 20);
    other(f, "UNLOCK TABLES");
    f->ss->tables_asked_us = 0;
    assert_int_equal(count_bound(f, "h"), 2);
    assert_int_equal(unblocked(f, SHARD_BOUND), 1);
    assert_int_equal(unblocked(f, 0), !tables[t].knows_heads);
    ok(f, OPS->lost_bound_claims(f->ss, "h", 60000, 10, &batch, &f->err));
  }
}

/* People's commands run on the thread that reads for all routes: one that needs a table which somebody holds says so,
 * and is not tried again and again, for a second each. */
static void a_command_is_not_repeated_while_a_table_is_locked(void **state) {
  struct fixture *f = *state;
  enum {
    ROUND_TRIPS = 6
  }; /* asking for locked shards, locking the row's entries and the row, the change, its audit line, undoing it */
  static const char *const tables[] = {"outbox_history WRITE", "outbox_audit READ"};
  const uint64_t id = 1;
  enum intervened changed = INTERVENED_DONE;
  sql(f, "INSERT INTO outbox (id, route, payload, shard) VALUES (1, 'r', 'p', 0)");
  for (size_t t = 0; t < 2; t++) {
    other(f, "LOCK TABLES %s", tables[t]);
    statements_sent();
    assert_int_equal(
        OPS->intervene(f->ss, f->leases, INTERVENE_CANCEL, &id, 1, 0, "ann", "m", "", 1000000, &changed, &f->err),
        STORE_BUSY);
    assert_in_range(statements_sent(), 1, ROUND_TRIPS);
    assert_int_equal(changed, INTERVENED_LOCKED);
    other(f, "UNLOCK TABLES");
    assert_string_equal(ask_text(f, "SELECT state FROM outbox"), "scheduled");
  }
  ok(f, OPS->intervene(f->ss, f->leases, INTERVENE_CANCEL, &id, 1, 0, "ann", "m", "", 1000000, &changed, &f->err));
  assert_true(changed);
}

/* What operators set for routes is read and written by the thread that says that we live. */
static void routes_are_not_asked_for_again_while_they_are_locked(void **state) {
  struct fixture *f = *state;
  static const char *const tables[] = {"outbox_routes WRITE", "outbox_audit WRITE"};
  enum { ROUND_TRIPS = 4 }; /* the setting of before, the new one, undoing it */
  const struct route_setting pause = {.route = "r", .paused = true};
  const struct route_setting *settings;
  size_t count;
  for (size_t t = 0; t < 2; t++) {
    other(f, "LOCK TABLES %s", tables[t]);
    statements_sent();
    if (t == 0)
      assert_int_equal(OPS->route_settings(f->ss, &settings, &count, &f->err), STORE_BUSY);
    assert_int_equal(OPS->set_route(f->ss, &pause, "duebox", &f->err), STORE_BUSY);
    assert_in_range(statements_sent(), 1, ROUND_TRIPS);
    other(f, "UNLOCK TABLES");
  }
  ok(f, OPS->set_route(f->ss, &pause, "duebox", &f->err));
  ok(f, OPS->route_settings(f->ss, &settings, &count, &f->err));
  assert_int_equal(count, 1);
}

static enum result_fate accept(void *ctx, const struct result_row *row, struct result_record *record,
                               struct decision *out) {
  *out = (struct decision){.event = EVENT_DONE, .attempt = 1};
  return RESULT_APPLIED;
}

/* Who floods a topic with rubbish keeps no result of others waiting, also while somebody holds the quarantine. */
static void what_fits_nothing_waits_for_the_quarantine_and_no_result_does(void **state) {
  struct fixture *f = *state;
  enum { RESULTS = 64, STRAY = 4, ROUND_TRIPS = 20 };
  struct store_result r[RESULTS];
  sql(f,
      "INSERT INTO outbox (id, route, payload, shard, message_id, state, attempt, lease_until) "
      "SELECT seq, 'r', 'p', 0, CONCAT('m', seq), 'awaiting', 1, '2035-01-01' FROM seq_1_to_%d",
      RESULTS);
  sql(f, "DELETE FROM outbox WHERE id MOD %d = 0", STRAY);
  for (int i = 0; i < RESULTS; i++) {
    r[i] = (struct store_result){.record = {.attempt = 1, .progress = -1}, .body = {"", 0}};
    snprintf(r[i].record.message_id, sizeof r[i].record.message_id, "m%d", i + 1);
    r[i].origin = r[i].record.message_id;
  }
  other(f, "LOCK TABLES outbox_quarantine WRITE");
  statements_sent();
  ok(f, OPS->settle_results(f->ss, r, RESULTS, accept, NULL, &f->err));
  assert_in_range(statements_sent(), 1, ROUND_TRIPS);
  for (int i = 0; i < RESULTS; i++)
    assert_int_equal(r[i].fate, (i + 1) % STRAY ? RESULT_APPLIED : RESULT_BUSY);
  assert_string_equal(r[STRAY - 1].refusal, "no task has this message id");
  f->ss->tables_asked_us = INT64_MAX / 2; /* it is not yet time to ask again, where that would cost a second */
  for (int i = STRAY - 1; i < RESULTS; i += STRAY) {
    r[i].broken = "as it was judged";
    statements_sent();
    ok(f, OPS->settle_results(f->ss, &r[i], 1, accept, NULL, &f->err));
    assert_in_range(statements_sent(), 0, ROUND_TRIPS / 4);
    assert_int_equal(r[i].fate, RESULT_BUSY);
  }
  other(f, "UNLOCK TABLES");
  f->ss->tables_asked_us = 0;
  for (int i = STRAY - 1; i < RESULTS; i += STRAY)
    ok(f, OPS->settle_results(f->ss, &r[i], 1, accept, NULL, &f->err));
  assert_int_equal(r[STRAY - 1].fate, RESULT_BROKEN);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_quarantine"), RESULTS / STRAY);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox"), 0);
}

/* A task that tells of a dead one goes to the end of the table. While somebody holds that, dying tasks are not each
 * tried by itself, again and again: the outcomes of all routes waited for that (P8). */
static void tasks_that_die_with_an_alert_are_found_locked_together(void **state) {
  struct fixture *f = *state;
  enum { TASKS = 64, DYING = 16, ROUND_TRIPS = 14 }; /* it asks of each table, and tries no task by itself */
  struct decision d[TASKS], dying[DYING];
  sql(f,
      "INSERT INTO outbox (id, route, payload, shard, message_id) SELECT seq, 'r', 'p', 0, CONCAT('m', seq) "
      "FROM seq_1_to_%d",
      TASKS);
  for (uint64_t id = 1; id <= TASKS; id++) {
    d[id - 1] = decide_on(f, id, id % (TASKS / DYING) ? EVENT_DONE : EVENT_DEAD);
    d[id - 1].alert_route = d[id - 1].event == EVENT_DEAD ? "alerts" : NULL;
    d[id - 1].keep_us = d[id - 1].event == EVENT_DEAD ? 1000000 : 0;
  }
  other(f, "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ");
  other(f, "START TRANSACTION");
  other(f, "SELECT id FROM outbox WHERE id > %d FOR UPDATE", TASKS);
  assert_int_equal(settle(f, d, TASKS), TASKS - DYING);
  for (int i = 0, n = 0; i < TASKS; i++) {
    assert_int_equal(d[i].busy, d[i].event == EVENT_DEAD);
    assert_int_equal(d[i].applied, d[i].event == EVENT_DONE);
    if (d[i].busy)
      dying[n++] = d[i];
  }
  session_met_lock(f->ss);
  statements_sent();
  assert_int_equal(settle(f, dying, DYING), 0);
  assert_in_range(statements_sent(), 1, ROUND_TRIPS);
  other(f, "COMMIT");
  assert_int_equal(settle(f, dying, DYING), DYING);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox WHERE route = 'alerts'"), DYING);
}

int main(int argc, char **argv) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, store_setup, store_teardown)
  const struct CMUnitTest tests[] = {
      TEST(a_locked_table_holds_up_what_needs_it_and_nothing_else),
      TEST(reading_goes_on_while_a_table_is_locked),
      TEST(a_command_is_not_repeated_while_a_table_is_locked),
      TEST(routes_are_not_asked_for_again_while_they_are_locked),
      TEST(tasks_that_die_with_an_alert_are_found_locked_together),
      TEST(what_fits_nothing_waits_for_the_quarantine_and_no_result_does),
  };
  return store_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
