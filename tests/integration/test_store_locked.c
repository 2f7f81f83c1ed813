/* SPDX-License-Identifier: MIT
 *
 * The store when another transaction holds a row and does not end: everything else goes on.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "integration/store_fixture.h"
#include "outbox/session.h"

#define OPS f->store.ops

/* How often a session began to wait for a lock on a row: counted by the server, which only this test uses, because time
 * tells it from other delays only where the machine has nothing else to do. */
static int64_t lock_waits(struct fixture *f) {
  return ask(f, "SELECT variable_value FROM %s.global_status WHERE variable_name = 'INNODB_ROW_LOCK_WAITS'",
             is_mysql(f) ? "performance_schema" : "information_schema");
}

/* The same, on a session that has met a lock just now: for how long it remembers that is no matter of a slow machine.
 */
static int64_t remembered(struct fixture *f) {
  session_met_lock(f->ss);
  return lock_waits(f);
}

/* Rows 1 to 3 of shard 0; the second connection holds row 2. */
static void hold_row(struct fixture *f, const char *columns, const char *values) {
  for (int id = 1; id <= 3; id++)
    sql(f, "INSERT INTO outbox (id, route, payload, shard, message_id%s) VALUES (%d, 'r', 'p', 0, 'm%d'%s)", columns,
        id, id, values);
  other(f, "START TRANSACTION");
  other(f, "UPDATE outbox SET priority = 9 WHERE id = 2");
}

static void claims_pass_over_a_locked_row(void **state) {
  struct fixture *f = *state;
  const uint64_t ids[] = {1, 2, 3};
  struct task_batch *batch;
  uint64_t lost;
  hold_row(f, "", "");
  int64_t before = lock_waits(f);
  ok(f, claim_rows(f, f->leases, 1, ids, 3, 1000, 1000, &batch, &lost));
  assert_int_equal(lock_waits(f), before);
  assert_false(lost);
  assert_int_equal(batch->count, 2);
  release(batch);
  ok(f, claim_rows(f, f->leases, 1, &ids[1], 1, 1000, 1000, &batch, &lost));
  assert_null(batch);
  assert_string_equal(ask_text(f, "SELECT GROUP_CONCAT(state ORDER BY id) FROM outbox"), "claimed,scheduled,claimed");
  other(f, "COMMIT");
  ok(f, claim_rows(f, f->leases, 1, &ids[1], 1, 1000, 1000, &batch, &lost));
  assert_int_equal(batch->count, 1);
  release(batch);
}

/* The entries of the scheduled rows of route r, and the room between them: what an operator's SELECT .. FOR UPDATE
 * locks, in a transaction as it is by default. */
static void hold_scheduled_entries(struct fixture *f) {
  other(f, "START TRANSACTION");
  other(f,
        "SELECT id FROM outbox FORCE INDEX (ix_next) WHERE state = 'scheduled' AND shard = 0 AND route = 'r' LOCK IN "
        "SHARE MODE");
}

/* The reading thread claims: it must not wait. */
static void claims_do_not_wait_for_an_index_entry(void **state) {
  struct fixture *f = *state;
  const uint64_t ids[] = {1, 2, 3};
  struct task_batch *batch;
  uint64_t lost;
  hold_row(f, "", "");
  other(f, "ROLLBACK");
  hold_scheduled_entries(f);
  int64_t before = lock_waits(f);
  assert_int_equal(claim_rows(f, f->leases, 1, ids, 3, 1000, 1000, &batch, &lost), STORE_BUSY);
  assert_in_range(lock_waits(f) - before, 0, is_mysql(f)); /* it cannot be told not to wait, but only the first time */
  assert_null(batch);
  before = remembered(f);
  (void)claim_rows(f, f->leases, 1, ids, 3, 1000, 1000, &batch, &lost);
  assert_int_equal(lock_waits(f), before);
  assert_null(batch);
  other(f, "COMMIT");
  ok(f, claim_rows(f, f->leases, 1, ids, 3, 1000, 1000, &batch, &lost));
  assert_int_equal(batch->count, 3);
  release(batch);
}

/* A daemon's place must not depend on rows of others: the heartbeat of every daemon once failed while somebody held the
 * row of an instance that was long dead, and with it the renewal of all leases. */
static void a_locked_row_of_a_dead_instance_stops_nobody(void **state) {
  struct fixture *f = *state;
  struct instance_row me = {.id = "a", .host = "h", .admin_url = "", .version = "1", .routes = "x", .pid = 42};
  uint32_t living, sets;
  sql(f, "INSERT INTO outbox_instances (id, host, alive_until) VALUES ('old', 'h', '2020-01-01'), "
         "('older', 'h', '2020-01-01')");
  other(f, "START TRANSACTION");
  other(f, "SELECT * FROM outbox_instances WHERE id = 'old' FOR UPDATE");
  int64_t before = lock_waits(f);
  ok(f, OPS->beat(f->ss, &me, 60000, &living, &sets, &f->err));
  assert_int_equal(living, 1);
  ok(f, OPS->housekeep(f->ss, 86400000, 86400000, &f->err));
  assert_int_equal(lock_waits(f), before);
  assert_string_equal(ask_text(f, "SELECT GROUP_CONCAT(id ORDER BY id) FROM outbox_instances"), "a,old");
  other(f, "COMMIT");
}

/* One shard's row that somebody holds costs no other lease, and taking a shard never waits. */
static void a_locked_shard_costs_no_other_lease(void **state) {
  struct fixture *f = *state;
  enum lease_fate fates[SHARDS];
  struct shard_row rows[STORE_SHARDS_MAX];
  size_t count;
  uint64_t epoch;
  int64_t now;
  sql(f, "UPDATE outbox_shards SET lease_until = UTC_TIMESTAMP(6) - INTERVAL 1 SECOND WHERE shard = 3");
  ok(f, OPS->shards(f->ss, rows, &count, &(uint64_t){0}, &f->err));
  other(f, "START TRANSACTION");
  other(f, "SELECT * FROM outbox_shards WHERE shard IN (1, 3) LOCK IN SHARE MODE");
  int64_t before = lock_waits(f);
  assert_int_equal(OPS->acquire(f->ss, "she", &rows[3], 60000, &epoch, &f->err), STORE_BUSY);
  assert_int_equal(epoch, 0);
  assert_int_equal(lock_waits(f), before);
  for (int i = 0; i < 3; i++) { /* the first time it waits once, after that it knows */
    ok(f, OPS->renew(f->ss, "me", f->leases, 3, 90000, fates, &now, &f->err));
    assert_true(fates[0] == LEASE_RENEWED && fates[1] == LEASE_BUSY && fates[2] == LEASE_RENEWED);
  }
  assert_in_range(lock_waits(f) - before, 0, 1);
  assert_string_equal(ask_text(f, "SELECT GROUP_CONCAT(shard ORDER BY shard) FROM outbox_shards WHERE lease_until > "
                                  "UTC_TIMESTAMP(6) + INTERVAL 75 SECOND"),
                      "0,2");
  other(f, "COMMIT");
  ok(f, OPS->renew(f->ss, "me", f->leases, 3, 90000, fates, &now, &f->err));
  assert_int_equal(fates[1], LEASE_RENEWED);
  ok(f, OPS->acquire(f->ss, "she", &rows[3], 60000, &epoch, &f->err));
  assert_true(epoch > rows[3].epoch);
}

/* What the server refuses in one step of housekeeping does not stop the others, and is named. */
static void housekeeping_goes_on_after_a_refusal(void **state) {
  struct fixture *f = *state;
  sql(f, "INSERT INTO outbox_audit (at, actor, verb, filter, changed) VALUES ('2020-01-01', 'ann', 'cancel', '', 1)");
  sql(f, "RENAME TABLE outbox_quarantine TO gone");
  assert_int_equal(OPS->housekeep(f->ss, 86400000, 86400000, &f->err), STORE_REFUSED);
  assert_non_null(strstr(f->err.text, "housekeeping: deleting old quarantined results"));
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_audit"), 0);
  sql(f, "RENAME TABLE gone TO outbox_quarantine");
}

static void settles_all_but_a_locked_row(void **state) {
  struct fixture *f = *state;
  struct decision d[3];
  hold_row(f, "", "");
  for (uint64_t id = 1; id <= 3; id++)
    d[id - 1] = decide_on(f, id, EVENT_DONE);
  int64_t before = lock_waits(f);
  assert_int_equal(settle(f, d, 3), 2);
  assert_in_range(lock_waits(f) - before, 0, 1); /* one, and no second */
  assert_true(d[1].busy && !d[1].applied);
  assert_false(d[0].busy || d[2].busy);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox"), 1);
  for (int i = 0; i < 3; i++) { /* again and again: it costs no waiting */
    before = remembered(f);
    assert_int_equal(settle(f, &d[1], 1), 0);
    assert_int_equal(lock_waits(f), before);
    assert_true(d[1].busy);
  }
  other(f, "COMMIT");
  assert_int_equal(settle(f, &d[1], 1), 1);
  assert_false(d[1].busy);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox"), 0);
}

/* Somebody's lock on one row of outbox_shards, which every settling write takes for its fence, once halved every batch
 * and let each half wait for a second: the whole database slowed down to nothing (P8). Only that shard's tasks wait. */
static void settles_all_but_a_locked_shard(void **state) {
  struct fixture *f = *state;
  enum { N = 40 };
  struct decision d[N];
  for (int id = 1; id <= N; id++)
    sql(f, "INSERT INTO outbox (id, route, payload, shard, message_id) VALUES (%d, 'r', 'p', %d, 'm%d')", id,
        id % SHARDS, id);
  other(f, "START TRANSACTION");
  other(f, "SELECT * FROM outbox_shards WHERE shard = 1 FOR UPDATE");
  for (uint64_t id = 1; id <= N; id++)
    d[id - 1] = decide_on(f, id, EVENT_DONE);
  int64_t before = lock_waits(f);
  assert_int_equal(settle(f, d, N / 2), N / 2 * 3 / 4);
  assert_in_range(lock_waits(f) - before, 0, 1); /* one, and no second */
  before = remembered(f);
  assert_int_equal(settle(f, d + N / 2, N / 2), N / 2 * 3 / 4);
  for (int i = 0; i < N; i++) {
    assert_int_equal(d[i].busy, (i + 1) % SHARDS == 1);
    assert_int_equal(d[i].applied, !d[i].busy);
  }
  assert_int_equal(settle(f, &d[0], 1), 0); /* again: it costs no waiting */
  assert_true(d[0].busy);
  assert_int_equal(lock_waits(f), before);
  other(f, "COMMIT");
  size_t left = 0;
  for (int i = 0; i < N; i++)
    if (d[i].busy)
      d[left++] = d[i];
  assert_int_equal(settle(f, d, left), left);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox"), 0);
}

static void hold_shard_2(struct fixture *f) {
  other(f, "START TRANSACTION");
  other(f, "SELECT * FROM outbox_shards WHERE shard = 2 FOR UPDATE");
}

/* The same with a COMMIT whose answer was lost: what it wrote in the locked shard is found out afterwards. */
static void an_unknown_commit_in_a_locked_shard_is_found_out(void **state) {
  struct fixture *f = *state;
  struct decision d[2];
  for (int id = 1; id <= 2; id++) {
    sql(f, "INSERT INTO outbox (id, route, payload, shard, message_id) VALUES (%d, 'r', 'p', %d, 'm%d')", id, id, id);
    d[id - 1] = decide_on(f, (uint64_t)id, EVENT_DONE);
  }
  d[1].busy = true;
  fault_arm(f, FAULT_LOSE_ANSWER, "COMMIT", 0, 1);
  fault_call(f, "SKIP LOCKED", hold_shard_2);
  size_t applied = settle(f, d, 2);
  other(f, "COMMIT");
  for (int i = 0; i < 2; i++)
    if (d[i].busy)
      applied += settle(f, &d[i], 1);
  assert_int_equal(applied, 2);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox"), 0);
}

/* The reading thread claims, holds and carries out commands: with a shard locked it reads on in the others. */
static void claims_and_commands_leave_a_locked_shard_alone(void **state) {
  struct fixture *f = *state;
  const uint64_t ids[] = {1, 2, 3, 4};
  const struct store_routes which = {
      .priority = 5, .routes = (const char *const[]){"r"}, .route_count = 1, .limit = 10};
  struct task_batch *batch;
  uint32_t moved;
  uint64_t lost;
  enum intervened changed = INTERVENED_DONE;
  for (int id = 1; id <= 4; id++)
    sql(f, "INSERT INTO outbox (id, route, payload, shard, message_id) VALUES (%d, 'r', 'p', %d, 'm%d')", id,
        id % SHARDS, id);
  other(f, "START TRANSACTION");
  other(f, "SELECT * FROM outbox_shards WHERE shard = 1 FOR UPDATE");
  int64_t before = lock_waits(f);
  assert_int_equal(claim_rows(f, f->leases, SHARDS, ids, 4, 1000, 1000, &batch, &lost), STORE_BUSY);
  assert_null(batch);
  assert_in_range(lock_waits(f) - before, 0, 1); /* one, and no second */
  before = remembered(f);
  ok(f, claim_rows(f, f->leases, SHARDS, ids, 4, 1000, 1000, &batch, &lost));
  assert_int_equal(batch->count, 3);
  assert_false(lost);
  release(batch);
  assert_int_equal(claim_rows(f, f->leases, SHARDS, ids, 1, 1000, 1000, &batch, &lost), STORE_OK);
  assert_null(batch);
  assert_int_equal(claim_rows(f, &f->leases[1], 1, ids, 1, 1000, 1000, &batch, &lost), STORE_BUSY);
  ok(f, OPS->hold(f->ss, &f->leases[1], &which, &moved, &f->err));
  assert_int_equal(moved, 0);
  assert_int_equal(
      OPS->intervene(f->ss, &f->leases[1], INTERVENE_CANCEL, ids, 1, 0, "ann", "m", "", 0, &changed, &f->err),
      STORE_BUSY);
  assert_int_equal(changed, INTERVENED_LOCKED);
  assert_int_equal(lock_waits(f), before);
  other(f, "COMMIT");
  ok(f, claim_rows(f, &f->leases[1], 1, ids, 1, 1000, 1000, &batch, &lost));
  assert_int_equal(batch->count, 1);
  release(batch);
}

/* A transaction may hold an entry of another index alone: SKIP LOCKED by the primary key does not see that. */
static void hold_index_entry(struct fixture *f) {
  other(f, "START TRANSACTION");
  other(f, "SELECT message_id FROM outbox FORCE INDEX (ux_message_id) WHERE message_id = 'm7' LOCK IN SHARE MODE");
}

static void settles_all_but_a_row_whose_index_entry_is_locked(void **state) {
  struct fixture *f = *state;
  enum { N = 20 };
  struct decision d[N];
  for (int id = 1; id <= N; id++)
    sql(f, "INSERT INTO outbox (id, route, payload, shard, message_id) VALUES (%d, 'r', 'p', 0, 'm%d')", id, id);
  hold_index_entry(f);
  for (uint64_t id = 1; id <= N; id++)
    d[id - 1] = decide_on(f, id, EVENT_DONE);
  int64_t before = lock_waits(f);
  assert_int_equal(settle(f, d, N), N - 1);
  assert_in_range(lock_waits(f) - before, 0, 1); /* one, and no second */
  for (int i = 0; i < N; i++)
    assert_int_equal(d[i].busy, i == 6);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox"), 1);
  before = remembered(f); /* again: it costs no waiting */
  assert_int_equal(settle(f, &d[6], 1), 0);
  assert_int_equal(lock_waits(f), before);
  assert_true(d[6].busy);
  other(f, "COMMIT");
  assert_int_equal(settle(f, &d[6], 1), 1);
  assert_int_equal(ask(f, "SELECT @@innodb_lock_wait_timeout > 0"), 1);
}

/* Three such entries once kept a thousand outcomes of 3,000 from being written for as long as they were held. */
static void settles_all_but_rows_whose_index_entries_are_locked(void **state) {
  struct fixture *f = *state;
  enum { N = 3000 };
  static const uint64_t held[] = {7, 1500, 2999};
  struct decision *d = calloc(N, sizeof *d);
  assert_non_null(d);
  sql(f,
      "INSERT INTO outbox (id, route, payload, shard, message_id) SELECT seq, 'r', 'p', 0, CONCAT('m', seq) "
      "FROM seq_1_to_%d",
      N);
  other(f, "START TRANSACTION");
  for (size_t i = 0; i < 3; i++)
    other(f, "SELECT message_id FROM outbox FORCE INDEX (ux_message_id) WHERE message_id = 'm%llu' LOCK IN SHARE MODE",
          (unsigned long long)held[i]);
  for (uint64_t i = 0; i < N; i++)
    d[i] = (struct decision){
        .id = i + 1, .message_id = message_id_of(f, i + 1), .from = TASK_SCHEDULED, .event = EVENT_DONE, .attempt = 1};
  assert_int_equal(settle(f, d, N), N - 3);
  for (size_t i = 0; i < 3; i++)
    assert_true(d[held[i] - 1].busy);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox"), 3);
  other(f, "COMMIT");
  for (size_t i = 0; i < 3; i++)
    assert_int_equal(settle(f, &d[held[i] - 1], 1), 1);
  free(d);
}

static void a_locked_row_that_goes_is_no_longer_busy(void **state) {
  struct fixture *f = *state;
  hold_row(f, "", "");
  other(f, "DELETE FROM outbox WHERE id = 2");
  struct decision d = decide_on(f, 2, EVENT_DONE);
  assert_int_equal(settle(f, &d, 1), 0);
  assert_true(d.busy);
  other(f, "COMMIT");
  assert_int_equal(settle(f, &d, 1), 0);
  assert_false(d.busy || d.applied);
}

static void locks_of_a_moment_are_waited_for(void **state) {
  struct fixture *f = *state;
  struct decision d[3];
  hold_row(f, "", "");
  other(f, "COMMIT");
  for (uint64_t id = 1; id <= 3; id++)
    d[id - 1] = decide_on(f, id, EVENT_PUBLISHED); /* the careful way at once */
  capture_start();
  assert_int_equal(settle(f, d, 3), 3);
  char **scripts;
  size_t count = capture_end(&scripts);
  for (size_t i = 0; i < count; i++) {
    assert_null(strstr(scripts[i], "SKIP LOCKED"));
    free(scripts[i]);
  }
  assert_true(count > 0);
}

static void an_unknown_commit_beside_a_locked_row_is_found_out(void **state) {
  struct fixture *f = *state;
  struct decision d[3];
  hold_row(f, "", "");
  for (uint64_t id = 1; id <= 3; id++)
    d[id - 1] = decide_on(f, id, EVENT_DONE);
  d[1].busy = true;
  fault_arm(f, FAULT_LOSE_ANSWER, "COMMIT", 0, 1);
  assert_int_equal(settle(f, d, 3), 2);
  assert_true(d[0].applied && d[1].busy && d[2].applied);
  other(f, "COMMIT");
  assert_int_equal(settle(f, &d[1], 1), 1);
}

static enum result_fate accept(void *ctx, const struct result_row *row, struct result_record *record,
                               struct decision *out) {
  *out = (struct decision){.event = EVENT_DONE, .attempt = 1, .keep_us = INT64_C(3600000000)};
  return RESULT_APPLIED;
}

static void results_pass_over_a_locked_row(void **state) {
  struct fixture *f = *state;
  struct store_result r[4];
  hold_row(f, ", state, attempt, lease_until", ", 'awaiting', 1, '2035-01-01'");
  for (int i = 0; i < 4; i++)
    r[i] = (struct store_result){.record = {.attempt = 1, .progress = -1}, .body = {"", 0}};
  for (int i = 0; i < 4; i++)
    snprintf(r[i].record.message_id, sizeof r[i].record.message_id, "m%d", i + 1);
  int64_t before = lock_waits(f);
  ok(f, OPS->settle_results(f->ss, r, 4, accept, NULL, &f->err));
  assert_in_range(lock_waits(f) - before, 0, 1); /* one, and no second */
  assert_int_equal(r[0].fate, RESULT_APPLIED);
  assert_int_equal(r[1].fate, RESULT_BUSY);
  assert_int_equal(r[2].fate, RESULT_APPLIED);
  assert_int_equal(r[3].fate, RESULT_ORPHAN);
  before = remembered(f);
  ok(f, OPS->settle_results(f->ss, &r[1], 1, accept, NULL, &f->err));
  assert_int_equal(lock_waits(f), before);
  assert_int_equal(r[1].fate, RESULT_BUSY);
  other(f, "COMMIT");
  ok(f, OPS->settle_results(f->ss, &r[1], 1, accept, NULL, &f->err));
  assert_int_equal(r[1].fate, RESULT_APPLIED);
  assert_string_equal(ask_text(f, "SELECT CONCAT_WS('|', (SELECT COUNT(*) FROM outbox), (SELECT COUNT(*) FROM "
                                  "outbox_history), (SELECT COUNT(*) FROM outbox_quarantine))"),
                      "0|3|1");
}

/* Somebody has deleted a record from the quarantine, has not committed that yet, and it comes once more. */
static void a_locked_record_in_quarantine_is_waited_for_once(void **state) {
  struct fixture *f = *state;
  struct store_result r = {.broken = "no status", .source = "s", .origin = "o", .body = {"b", 1}};
  ok(f, OPS->settle_results(f->ss, &r, 1, accept, NULL, &f->err));
  other(f, "START TRANSACTION");
  other(f, "DELETE FROM outbox_quarantine");
  int64_t before = lock_waits(f);
  ok(f, OPS->settle_results(f->ss, &r, 1, accept, NULL, &f->err));
  assert_in_range(lock_waits(f) - before, 1, is_mysql(f) ? 2 : 1);
  assert_int_equal(r.fate, RESULT_BUSY);
  other(f, "ROLLBACK");
  ok(f, OPS->settle_results(f->ss, &r, 1, accept, NULL, &f->err));
  assert_int_equal(r.fate, RESULT_BROKEN);
  assert_int_equal(ask(f, "SELECT seen FROM outbox_quarantine"), 2);
}

static void results_pass_over_a_row_whose_index_entry_is_locked(void **state) {
  struct fixture *f = *state;
  enum { N = 20 };
  struct store_result r[N];
  for (int i = 0; i < N; i++) {
    sql(f,
        "INSERT INTO outbox (id, route, payload, shard, message_id, state, attempt, lease_until) VALUES (%d, 'r', 'p', "
        "0, 'm%d', 'awaiting', 1, '2035-01-01')",
        i + 1, i + 1);
    r[i] = (struct store_result){.record = {.attempt = 1, .progress = -1}, .body = {"", 0}};
    snprintf(r[i].record.message_id, sizeof r[i].record.message_id, "m%d", i + 1);
  }
  hold_index_entry(f);
  int64_t before = lock_waits(f);
  ok(f, OPS->settle_results(f->ss, r, N, accept, NULL, &f->err));
  assert_in_range(lock_waits(f) - before, 0, 1); /* one, and no second */
  for (int i = 0; i < N; i++)
    assert_int_equal(r[i].fate, i == 6 ? RESULT_BUSY : RESULT_APPLIED);
  before = remembered(f);
  ok(f, OPS->settle_results(f->ss, &r[6], 1, accept, NULL, &f->err));
  assert_int_equal(lock_waits(f), before);
  assert_int_equal(r[6].fate, RESULT_BUSY);
  other(f, "COMMIT");
  ok(f, OPS->settle_results(f->ss, &r[6], 1, accept, NULL, &f->err));
  assert_int_equal(r[6].fate, RESULT_APPLIED);
}

static void holding_passes_over_a_locked_row(void **state) {
  struct fixture *f = *state;
  const struct store_routes which = {
      .priority = 5, .routes = (const char *const[]){"r"}, .route_count = 1, .limit = 10};
  uint32_t moved = 0;
  bool all = true;
  hold_row(f, "", "");
  other(f, "ROLLBACK");
  other(f, "START TRANSACTION");
  other(f, "SELECT id FROM outbox WHERE id = 2 FOR UPDATE");
  int64_t before = lock_waits(f);
  ok(f, OPS->hold(f->ss, f->leases, &which, &moved, &f->err));
  assert_int_equal(moved, 2);
  ok(f, OPS->hold(f->ss, f->leases, &which, &moved, &f->err));
  assert_int_equal(moved, 0);
  assert_int_equal(lock_waits(f), before);
  assert_string_equal(ask_text(f, "SELECT GROUP_CONCAT(state ORDER BY id) FROM outbox"), "held,scheduled,held");
  other(f, "COMMIT");
  ok(f, OPS->hold(f->ss, f->leases, &which, &moved, &f->err));
  assert_int_equal(moved, 1);
  other(f, "START TRANSACTION");
  other(f, "SELECT id FROM outbox WHERE id = 2 FOR UPDATE");
  before = remembered(f);
  ok(f, OPS->unhold(f->ss, f->leases, "r", 10, &moved, &all, &f->err));
  assert_int_equal(moved, 2);
  assert_false(all);
  ok(f, OPS->unhold(f->ss, f->leases, "r", 10, &moved, &all, &f->err));
  assert_int_equal(moved, 0);
  assert_int_equal(lock_waits(f), before);
  other(f, "COMMIT");
  ok(f, OPS->unhold(f->ss, f->leases, "r", 10, &moved, &all, &f->err));
  assert_int_equal(moved, 1);
}

/* One locked row once kept all of its request from being changed, and each was asked for alone then. */
static void commands_pass_over_a_locked_row(void **state) {
  struct fixture *f = *state;
  const uint64_t ids[] = {2, 1, 3, 99};
  const enum intervened expected[] = {INTERVENED_LOCKED, INTERVENED_DONE, INTERVENED_DONE, INTERVENED_NOT};
  enum intervened became[4];
  hold_row(f, "", "");
  for (int verb = INTERVENE_RESCHEDULE; verb >= INTERVENE_CANCEL; verb--) {
    int64_t before = lock_waits(f);
    ok(f, OPS->intervene(f->ss, f->leases, (enum intervention)verb, ids, 4, INT64_C(1893456000000000), "ann", "m", "",
                         0, became, &f->err));
    assert_int_equal(lock_waits(f), before);
    assert_memory_equal(became, expected, sizeof expected);
  }
  other(f, "COMMIT");
  assert_string_equal(ask_text(f, "SELECT GROUP_CONCAT(verb, changed ORDER BY id) FROM outbox_audit"),
                      "reschedule2,cancel2");
  ok(f, OPS->intervene(f->ss, f->leases, INTERVENE_CANCEL, ids, 1, 0, "ann", "m", "", 0, became, &f->err));
  assert_int_equal(became[0], INTERVENED_DONE);
}

/* The reading thread carries commands out: one such lock once kept all routes waiting for five seconds. */
static void commands_do_not_wait_for_an_index_entry(void **state) {
  struct fixture *f = *state;
  const uint64_t ids[] = {2};
  hold_row(f, "", "");
  other(f, "ROLLBACK");
  for (int verb = INTERVENE_CANCEL; verb <= INTERVENE_RESCHEDULE; verb++) {
    enum intervened changed = INTERVENED_DONE;
    hold_scheduled_entries(f);
    int64_t before = lock_waits(f);
    ok(f, OPS->intervene(f->ss, f->leases, (enum intervention)verb, ids, 1, INT64_C(1893456000000000), "ann", "m", "",
                         0, &changed, &f->err));
    assert_int_equal(lock_waits(f), before);
    assert_int_equal(changed, INTERVENED_LOCKED);
    other(f, "COMMIT");
  }
  enum intervened changed = INTERVENED_NOT;
  ok(f, OPS->intervene(f->ss, f->leases, INTERVENE_RESCHEDULE, ids, 1, INT64_C(1893456000000000), "ann", "m", "", 0,
                       &changed, &f->err));
  assert_true(changed);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_audit"), 1);
}

/* The thread that says that we live pauses routes whose destination is gone: it says so again, and does not wait. */
static void a_daemon_does_not_wait_to_pause_a_route(void **state) {
  struct fixture *f = *state;
  const struct route_setting gone = {.route = "r", .paused = true, .changed_us = INT64_C(1893456000000000)};
  sql(f, "INSERT INTO outbox_routes (route, paused) VALUES ('r', 0)");
  other(f, "START TRANSACTION");
  other(f, "SELECT * FROM outbox_routes FOR UPDATE");
  int64_t before = lock_waits(f);
  assert_int_equal(OPS->set_route(f->ss, &gone, "duebox", &f->err), STORE_BUSY);
  assert_in_range(lock_waits(f) - before, 0, is_mysql(f));
  other(f, "COMMIT");
  ok(f, OPS->set_route(f->ss, &gone, "duebox", &f->err));
}

/* The reading thread does not stay with rows that cannot come back now: it is at the next look that they are tried
 * again. */
static void bringing_back_is_tried_once_beside_a_locked_index_entry(void **state) {
  const struct store_unblock what = {"r", true, 10};
  struct fixture *f = *state;
  uint32_t moved = 0;
  bool all = true;
  sql(f, "INSERT INTO outbox (id, route, payload, shard, message_id) VALUES (1, 'r', 'p', 0, 'm1')");
  sql(f, "INSERT INTO outbox (id, route, payload, shard, message_id, state) VALUES (2, 'r', 'p', 0, 'm2', 'held'), "
         "(3, 'r', 'p', 0, 'm3', 'blocked')");
  hold_scheduled_entries(f);
  statements_sent();
  ok(f, OPS->unhold(f->ss, f->leases, "r", 10, &moved, &all, &f->err));
  assert_false(moved || all);
  int in_vain = statements_sent();
  ok(f, OPS->unblock(f->ss, f->leases, "h", &what, &(struct store_walk){0}, &moved, &all, &f->err));
  assert_false(moved || all);
  in_vain += statements_sent();
  other(f, "COMMIT");
  ok(f, OPS->unhold(f->ss, f->leases, "r", 10, &moved, &all, &f->err));
  assert_int_equal(moved, 1);
  ok(f, OPS->unblock(f->ss, f->leases, "h", &what, &(struct store_walk){0}, &moved, &all, &f->err));
  assert_int_equal(moved, 1);
  int in_time = statements_sent();
  assert_in_range(in_vain, in_time, 2 * in_time);
}

int main(int argc, char **argv) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, store_setup, store_teardown)
  const struct CMUnitTest tests[] = {
      TEST(claims_pass_over_a_locked_row),
      TEST(claims_do_not_wait_for_an_index_entry),
      TEST(a_locked_row_of_a_dead_instance_stops_nobody),
      TEST(a_locked_shard_costs_no_other_lease),
      TEST(housekeeping_goes_on_after_a_refusal),
      TEST(settles_all_but_a_locked_row),
      TEST(settles_all_but_a_row_whose_index_entry_is_locked),
      TEST(settles_all_but_rows_whose_index_entries_are_locked),
      TEST(settles_all_but_a_locked_shard),
      TEST(an_unknown_commit_in_a_locked_shard_is_found_out),
      TEST(claims_and_commands_leave_a_locked_shard_alone),
      TEST(a_locked_row_that_goes_is_no_longer_busy),
      TEST(locks_of_a_moment_are_waited_for),
      TEST(an_unknown_commit_beside_a_locked_row_is_found_out),
      TEST(results_pass_over_a_locked_row),
      TEST(results_pass_over_a_row_whose_index_entry_is_locked),
      TEST(a_locked_record_in_quarantine_is_waited_for_once),
      TEST(holding_passes_over_a_locked_row),
      TEST(commands_pass_over_a_locked_row),
      TEST(commands_do_not_wait_for_an_index_entry),
      TEST(a_daemon_does_not_wait_to_pause_a_route),
      TEST(bringing_back_is_tried_once_beside_a_locked_index_entry),
  };
  return store_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
