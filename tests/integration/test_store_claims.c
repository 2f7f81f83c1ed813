/* SPDX-License-Identifier: MIT
 *
 * Recorded claims: what is compared, what is written, and how those of the dead are found.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "integration/store_fixture.h"

#define OPS f->store.ops
#define ROW(...) sql(f, "INSERT INTO outbox " __VA_ARGS__)

static void a_claim_is_in_the_row(void **state) {
  struct fixture *f = *state;
  const uint64_t ids[] = {1, 2, 3, 4};
  struct task_batch *batch;
  uint64_t lost;
  ROW("(id, route, payload, shard, timeout_ms) VALUES (1, 'r', 'a', 0, NULL), (2, 'r', 'b', 0, 100000), "
      "(4, 'r', 'd', 1, 1)");
  ROW("(id, route, payload, shard, delay_ms) VALUES (3, 'r', 'c', 0, 100000)");
  sql(f, "SET @before = UTC_TIMESTAMP(6)");
  ok(f, claim_rows(f, &f->leases[0], 1, ids, 4, 20000, 10000, &batch, &lost));
  assert_false(lost);
  assert_int_equal(batch->count, 2);
  assert_int_equal(batch->tasks[0].attempt, 1);
  assert_int_equal(batch->tasks[0].state, TASK_CLAIMED);
  assert_string_equal(batch->tasks[1].payload.data, "b");
  release(batch);
  assert_string_equal(
      ask_text(f, "SELECT GROUP_CONCAT(id, state, attempt, COALESCE(claimed_by, '') ORDER BY id) FROM outbox"),
      "1claimed1me,2claimed1me,3scheduled0,4scheduled0");
  static const int seconds[] = {
      30, 70}; /* the route's time-out, or as much of the task's as it lets it have, and ten more */
  for (int id = 1; id <= 2; id++)
    assert_int_equal(ask(f,
                         "SELECT lease_until - INTERVAL %d SECOND BETWEEN @before AND UTC_TIMESTAMP(6) FROM outbox "
                         "WHERE id = %d",
                         seconds[id - 1], id),
                     1);
  assert_int_equal(ask(f, "SELECT next_at = lease_until FROM outbox WHERE id = 1"), 1);
}

/* A row that an operator's statement changed after it was read is judged anew, and never claimed for a route that does
 * not work on it, nor for another task that was given its id. */
static void a_claim_compares_what_was_judged(void **state) {
  struct fixture *f = *state;
  const uint64_t ids[] = {1, 2, 3, 4};
  static const char message_ids[4][STORE_ID_MAX + 1] = {"m1", "m2", "m3", "m4"};
  struct shard_lease leases[] = {f->leases[0], {.shard = SHARD_BOUND, .epoch = 1}};
  const struct store_claim claim = {.instance = "me",
                                    .route = "r",
                                    .host = "h",
                                    .leases = leases,
                                    .lease_count = 2,
                                    .ids = ids,
                                    .message_ids = message_ids,
                                    .count = 4,
                                    .limit = {1000, INT64_MAX}};
  struct task_batch *batch;
  uint64_t lost;
  ROW("(id, route, payload, message_id, target_host) VALUES (1, 's', 'x', 'm1', 'h'), (2, 'r', 'x', 'other', 'h'), "
      "(3, 'r', 'x', 'm3', 'another'), (4, 'r', 'x', 'm4', 'h')");
  statements_sent();
  ok(f, OPS->claim(f->ss, &claim, &batch, &lost, &f->err));
  assert_int_equal(statements_sent(), 2); /* the fence, the claim and its COMMIT are one round trip */
  assert_int_equal(batch->count, 1);
  assert_int_equal(batch->tasks[0].id, 4);
  release(batch);
  assert_string_equal(ask_text(f, "SELECT GROUP_CONCAT(state ORDER BY id) FROM outbox"),
                      "scheduled,scheduled,scheduled,claimed");
}

/* What a dead daemon had claimed is found by whoever has the shard next, at once: not when the calls might have ended,
 * a day later perhaps. In the shard that nobody leases the claimer's own sign of life decides. */
static void claims_of_the_dead_are_found(void **state) {
  struct fixture *f = *state;
  const uint64_t ids[] = {1, 2};
  struct shard_lease lease = f->leases[0];
  struct task_batch *batch;
  uint64_t lost;
  ROW("(id, route, payload, shard, timeout_ms) VALUES (1, 'r', 'a', 0, 86400000), (2, 'r', 'b', 0, 86400000)");
  ok(f, claim_rows(f, f->leases, 1, ids, 1, 1000, 1000, &batch, &lost));
  release(batch);
  assert_int_equal(ask(f, "SELECT claim_epoch = (SELECT epoch FROM outbox_shards WHERE shard = 0) FROM outbox"), 1);
  ok(f, OPS->lost_claims(f->ss, &lease, 1, 100, &batch, &f->err));
  assert_null(batch);
  sql(f, "UPDATE outbox_shards SET epoch = epoch + 1 WHERE shard = 0");
  lease.epoch++;
  ok(f, claim_rows(f, &lease, 1, &ids[1], 1, 1000, 1000, &batch, &lost));
  release(batch);
  ok(f, OPS->lost_claims(f->ss, &lease, 1, 100, &batch, &f->err));
  assert_int_equal(batch->count, 1);
  assert_int_equal(batch->tasks[0].id, 1);
  release(batch);
  sql(f, "DELETE FROM outbox");
  sql(f, "INSERT INTO outbox_instances (id, host, alive_until) VALUES ('dead', 'h', '2020-01-01'), "
         "('alive', 'h', '2100-01-01')");
  ROW("(id, route, payload, target_host, state, claimed_by, claim_epoch, lease_until) VALUES "
      "(1, 'r', 'a', 'h', 'claimed', 'dead', 1, '2100-01-01'), (2, 'r', 'a', 'h', 'claimed', 'alive', 1, "
      "'2100-01-01'), "
      "(3, 'r', 'a', 'h', 'claimed', 'gone', 1, '2100-01-01')");
  ok(f, OPS->lost_bound_claims(f->ss, "h", 60000, 100, &batch, &f->err));
  assert_int_equal(batch->count, 1);
  assert_int_equal(batch->tasks[0].id, 1);
  release(batch);
}

/* outbox_instances may be emptied: that sent bound tasks a second time whose calls were still running. The next sign of
 * life puts the row right; of whoever gives none the claims are lost when its time is over. */
static void a_missing_instance_is_not_dead(void **state) {
  struct fixture *f = *state;
  struct task_batch *batch;
  uint32_t living, sets;
  ROW("(id, route, payload, target_host, state, claimed_by, claim_epoch, lease_until) VALUES "
      "(1, 'r', 'a', 'h', 'claimed', 'dead', 1, '2100-01-01'), (2, 'r', 'a', 'h', 'claimed', 'alive', 1, "
      "'2100-01-01'), (3, 'r', 'a', 'h', 'claimed', NULL, 1, '2100-01-01')");
  for (int i = 0; i < 2; i++) {
    ok(f, OPS->lost_bound_claims(f->ss, "h", 60000, 100, &batch, &f->err));
    assert_int_equal(batch->count, 1);
    assert_int_equal(batch->tasks[0].id, 3);
    release(batch);
  }
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_instances WHERE host = 'h' AND "
                          "ABS(TIMESTAMPDIFF(SECOND, UTC_TIMESTAMP(6), alive_until) - 60) < 30"),
                   2);
  sql(f, "UPDATE outbox_instances SET alive_until = UTC_TIMESTAMP(6)");
  const struct instance_row alive = {
      .id = "alive", .host = "its host", .admin_url = "", .version = "v", .routes = "[]", .pid = 7};
  ok(f, OPS->beat(f->ss, &alive, 60000, &living, &sets, &f->err));
  assert_int_equal(
      ask(f, "SELECT COUNT(*) FROM outbox_instances WHERE host = 'its host' AND version = 'v' AND pid = 7"), 1);
  ok(f, OPS->lost_bound_claims(f->ss, "h", 60000, 100, &batch, &f->err));
  assert_int_equal(batch->count, 2);
  assert_int_equal(batch->tasks[0].id, 1);
  assert_int_equal(batch->tasks[1].id, 3);
  release(batch);
}

static void a_stale_epoch_claims_nothing(void **state) {
  struct fixture *f = *state;
  const uint64_t id = 1;
  struct task_batch *batch;
  uint64_t lost;
  ROW("(id, route, payload, shard) VALUES (1, 'r', 'a', 0)");
  sql(f, "UPDATE outbox_shards SET epoch = epoch + 1, owner = 'other' WHERE shard = 1");
  ok(f, claim_rows(f, f->leases, 2, &id, 1, 20000, 10000, &batch, &lost));
  assert_int_equal(lost, shard_bit(1)); /* that one, which nothing is read from any more, and no other */
  assert_null(batch);
  sql(f, "UPDATE outbox_shards SET owner = NULL, lease_until = NULL WHERE shard = 0"); /* by hand */
  ok(f, claim_rows(f, f->leases, 1, &id, 1, 20000, 10000, &batch, &lost));
  assert_int_equal(lost, shard_bit(0));
  assert_null(batch);
  assert_string_equal(ask_text(f, "SELECT state FROM outbox"), "scheduled");
}

/* A failover may hand an epoch out twice: the fence knows whose it is, before claims, holds and people's commands too.
 * Otherwise two daemons would send the same tasks (P5). */
static void an_epoch_that_another_daemon_has_too_claims_nothing(void **state) {
  struct fixture *f = *state;
  const uint64_t id = 1;
  const struct store_routes which = {
      .priority = 5, .routes = (const char *const[]){"r"}, .route_count = 1, .limit = 10};
  struct task_batch *batch;
  uint32_t moved = 1;
  uint64_t lost;
  enum intervened changed = INTERVENED_DONE;
  ROW("(id, route, payload, shard) VALUES (1, 'r', 'a', 0)");
  sql(f, "UPDATE outbox_shards SET owner = 'other' WHERE shard = 0");
  ok(f, claim_rows(f, &f->leases[0], 1, &id, 1, 20000, 10000, &batch, &lost));
  assert_true(lost);
  assert_null(batch);
  ok(f, OPS->hold(f->ss, &f->leases[0], &which, &moved, &f->err));
  assert_int_equal(moved, 0);
  ok(f, OPS->intervene(f->ss, &f->leases[0], INTERVENE_CANCEL, &id, 1, 0, "ann", "m", "", 0, &changed, &f->err));
  assert_false(changed);
  assert_string_equal(ask_text(f, "SELECT CONCAT(state, attempt) FROM outbox"), "scheduled0");
}

/* shard and target_host change by their holder's hand alone, who knows that no copy is out: by plain SQL, 100 of 100
 * tasks in flight were sent twice (P4). What has no meaning is passed over, and never refused. */
static void a_row_goes_where_it_is_asked_to(void **state) {
  struct fixture *f = *state;
  static const struct {
    const char *before, *request, *after; /* target_host and shard; move_to_host and move_to_shard */
  } moves[] = {
      {"'', 0", "NULL, 2", ":2"},       {"'', 1", "'h', NULL", "h:63"},
      {"'', 1", "'h', 2", "h:63"},      {"'', 1", "NULL, 63", ":1"},
      {"'', 1", "'', NULL", ":1"},      {"'away', 63", "'h', NULL", "h:63"},
      {"'away', 63", "'', 3", ":3"},    {"'away', 63", "NULL, 3", "away:63"},
      {"'away', 63", "'', NULL", ":1"}, /* CRC32('m9') MOD 4 */
  };
  enum { N = sizeof moves / sizeof *moves };
  struct shard_lease leases[SHARDS + 1];
  bool lost[SHARDS + 1];
  struct decision d[N];
  memcpy(leases, f->leases, sizeof f->leases);
  leases[SHARDS] = (struct shard_lease){.shard = SHARD_BOUND, .epoch = 1};
  for (int i = 0; i < N; i++) {
    sql(f,
        "INSERT INTO outbox (id, message_id, route, payload, due_at, target_host, shard, move_to_host, move_to_shard) "
        "VALUES (%d, 'm%d', 'r', '', '2035-01-01', %s, %s)",
        i + 1, i + 1, moves[i].before, moves[i].request);
    d[i] = decide_on(f, (uint64_t)i + 1, EVENT_RELEASE);
    d[i].attempt = 0;
  }
  /* It is met at once, whenever it is due. */
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox WHERE next_at = '2000-01-01'"), N);
  ok(f, OPS->settle(f->ss, leases, SHARDS + 1, d, N, lost, &f->err));
  for (int i = 0; i < N; i++) {
    assert_true(d[i].applied);
    assert_string_equal(ask_text(f, "SELECT CONCAT(target_host, ':', shard) FROM outbox WHERE id = %d", i + 1),
                        moves[i].after);
  }
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox WHERE next_at = due_at AND attempt = 0 AND "
                          "COALESCE(move_to_host, move_to_shard) IS NULL"),
                   N);
}

/* What is read says that it is to move; it can be claimed by nobody, and is read wherever it is bound to. */
static void a_row_that_is_to_move_is_not_claimed(void **state) {
  struct fixture *f = *state;
  const uint64_t id = 1;
  uint64_t lost;
  sql(f, "INSERT INTO outbox (id, route, payload, target_host) VALUES (1, 'r', 'p', 'away'), (2, 'r', 'p', 'away')");
  sql(f, "UPDATE outbox SET move_to_host = 'h' WHERE id = 1");
  struct task_batch *batch = read_bound(f, "h");
  assert_non_null(batch);
  assert_int_equal(batch->count, 1);
  assert_true(batch->tasks[0].moves);
  release(batch);
  const struct shard_lease bound = {.shard = SHARD_BOUND, .epoch = 1};
  ok(f, claim_rows(f, &bound, 1, &id, 1, 1000, 1000, &batch, &lost));
  assert_null(batch);
}

/* What has an order_key moves in its turn (P5): not before it is due, and by the hand of its own host, which alone
 * knows what goes first; by another's when that is dead and its claims of the key have been taken back. */
static void a_row_with_an_order_key_moves_in_its_turn(void **state) {
  struct fixture *f = *state;
  sql(f, "INSERT INTO outbox_instances (id, host, alive_until) VALUES ('i', 'away', '2100-01-01')");
  ROW("(id, route, payload, order_key, target_host, move_to_host, due_at) VALUES "
      "(1, 'r', 'p', 'k', 'away', NULL, '2020-01-01'), (2, 'r', 'p', 'k', 'away', 'h', '2020-01-02'), "
      "(3, 'r', 'p', 'k', 'away', 'h', '2100-01-01')");
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox WHERE next_at = due_at"), 3);
  assert_int_equal(count_bound(f, "h"), 0);
  assert_int_equal(count_bound(f, "away"), 2);
  sql(f, "UPDATE outbox_instances SET alive_until = '2020-01-01'");
  assert_int_equal(count_bound(f, "h"), 1);
  sql(f, "UPDATE outbox SET state = 'claimed', lease_until = '2100-01-01' WHERE id = 1");
  assert_int_equal(count_bound(f, "h"), 0);
  sql(f, "INSERT INTO outbox_heads (head_id, shard, route, order_key) VALUES (1, 63, 'r', 'k'), (2, 63, 'r', 'k')");
  sql(f, "UPDATE outbox SET state = 'scheduled' WHERE id = 1");
  assert_int_equal(count_bound(f, "h"), 0);
  sql(f, "UPDATE outbox SET order_key = 'other' WHERE id = 1");
  assert_int_equal(count_bound(f, "h"), 1);
}

struct seen {
  uint64_t id[4];
  bool failed[4];
  size_t count;
};

static void see(void *ctx, const struct store_head *head) {
  struct seen *seen = ctx;
  assert_true(seen->count < 4);
  seen->failed[seen->count] = head->failed;
  seen->id[seen->count++] = head->id;
}

/* Others of its key wait for one that has moved, wherever both are; of several heads each waits for those before it, so
 * none waits for ever. Where failed tasks hold nobody up, one that fails after it has moved is no head any more. */
static void a_row_that_has_moved_is_waited_for(void **state) {
  struct fixture *f = *state;
  struct shard_lease leases[SHARDS + 1];
  bool lost[SHARDS + 1];
  struct decision d[2];
  struct seen seen = {0};
  uint32_t back;
  bool all;
  memcpy(leases, f->leases, sizeof f->leases);
  leases[SHARDS] = (struct shard_lease){.shard = SHARD_BOUND, .epoch = 1};
  ROW("(id, route, payload, order_key, shard, due_at, move_to_host) VALUES (7, 'r', '', 'k', 1, '2020-01-01', 'h'), "
      "(4, 'r', '', 'k', 1, '2020-01-02', 'h')");
  ROW("(id, route, payload, order_key, shard, due_at, state) VALUES (5, 'r', '', 'k', 1, '2020-01-03', 'blocked')");
  for (int i = 0; i < 2; i++) {
    d[i] = decide_on(f, i ? 4 : 7, EVENT_RELEASE);
    d[i].attempt = 0;
    d[i].head = true;
  }
  ok(f, OPS->settle(f->ss, leases, SHARDS + 1, d, 2, lost, &f->err));
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox WHERE target_host = 'h' AND shard = 63"), 2);
  ok(f, OPS->heads(f->ss, NULL, see, &seen, &f->err));
  assert_int_equal(seen.count, 2);
  assert_int_equal(seen.id[0], 7); /* due first */
  assert_int_equal(seen.id[1], 4);
  assert_false(seen.failed[0]);
  ok(f, OPS->unblock(f->ss, &leases[1], "h", &(struct store_unblock){"r", false, 10}, &(struct store_walk){0}, &back,
                     &all, &f->err));
  assert_int_equal(back, 0);
  /* Heads wait for those before them alone. */
  sql(f, "UPDATE outbox SET state = 'blocked' WHERE id <> 5");
  ok(f, OPS->unblock(f->ss, &leases[SHARDS], "h", &(struct store_unblock){"r", true, 10}, &(struct store_walk){0},
                     &back, &all, &f->err));
  assert_int_equal(back, 1);
  assert_string_equal(ask_text(f, "SELECT state FROM outbox WHERE id = 7"), "scheduled");
  sql(f, "UPDATE outbox SET failures = 1 WHERE id = 7");
  sql(f, "UPDATE outbox_heads SET failures = 1 WHERE head_id = 7"); /* as a failure there writes it */
  sql(f, "DELETE FROM outbox WHERE id = 4");
  ok(f, OPS->unblock(f->ss, &leases[1], "h", &(struct store_unblock){"r", true, 10}, &(struct store_walk){0}, &back,
                     &all, &f->err));
  assert_int_equal(back, 0);
  seen.count = 0;
  ok(f, OPS->heads(f->ss, NULL, see, &seen, &f->err));
  assert_true(seen.count == 1 && seen.failed[0]);
  ok(f, OPS->unblock(f->ss, &leases[1], "h", &(struct store_unblock){"r", false, 10}, &(struct store_walk){0}, &back,
                     &all, &f->err));
  assert_true(back == 1 && all);
}

/* Two instances may run under one name, and one that crashed has claims until it counts as dead. */
static void claims_of_others_for_our_host_are_told(void **state) {
  struct fixture *f = *state;
  struct seen seen = {0};
  ROW("(id, route, payload, target_host, order_key, state, claimed_by, lease_until) VALUES "
      "(1, 'r', 'a', 'h', 'k', 'claimed', 'other', '2100-01-01'), (2, 'r', 'a', 'h', '', 'claimed', 'other', "
      "'2100-01-01'), (3, 'r', 'a', 'h', 'ours', 'claimed', 'me', '2100-01-01'), (4, 'r', 'a', 'elsewhere', 'k', "
      "'claimed', 'other', '2100-01-01'), (5, 's', 'a', 'h', 'k', 'claimed', 'other', '2100-01-01'), (6, 'r', 'a', "
      "'h', "
      "'waits', 'scheduled', NULL, NULL)");
  ok(f, OPS->claims_elsewhere(f->ss, "me", "h", "r", see, &seen, &f->err));
  assert_int_equal(seen.count, 1);
  assert_int_equal(seen.id[0], 1);
}

/* Bound rows are their host's: a daemon that blocked those of another by the heads that it knew, or brought them back
 * at a moment of its own, broke the order of their keys. What is bound to a host that lives nowhere is anybody's. */
static void bound_rows_are_left_to_their_host_while_it_lives(void **state) {
  struct fixture *f = *state;
  const struct shard_lease bound = {.shard = SHARD_BOUND, .epoch = 1};
  const uint64_t ids[] = {1, 2, 3, 4, 5, 6};
  const struct store_limit limit = {.payload = 1000, .bytes = 1000};
  struct task_batch *batch;
  uint32_t back;
  bool all;
  sql(f, "INSERT INTO outbox_instances (id, host, alive_until) VALUES ('one', 'h', '2100-01-01'), "
         "('two', 'other', '2100-01-01'), ('three', 'away', '2020-01-01'), ('four', 'other', '2020-01-01')");
  ROW("(id, route, payload, target_host, order_key, move_to_host) VALUES (1, 'r', '', 'h', 'k', NULL), "
      "(2, 'r', '', 'other', 'k', NULL), (3, 'r', '', 'other', 'k', 'h'), (4, 'r', '', 'other', '', 'h'), "
      "(5, 'r', '', 'away', 'l', 'h'), (6, 'r', '', 'away', 'l', NULL)");
  ok(f, OPS->read_ids(f->ss, TASK_SCHEDULED, shard_bit(SHARD_BOUND), "h", ids, 6, 0, limit, &batch, &f->err));
  assert_int_equal(batch->count, 3); /* ours, and what we may move */
  assert_true(batch->tasks[0].id == 1 && batch->tasks[1].id == 4 && batch->tasks[2].id == 5);
  release(batch);
  ok(f, OPS->read_ids(f->ss, TASK_SCHEDULED, shard_bit(SHARD_BOUND), NULL, ids, 6, 0, limit, &batch, &f->err));
  assert_int_equal(batch->count, 6);
  release(batch);
  sql(f, "UPDATE outbox SET state = 'blocked'");
  ok(f, OPS->unblock(f->ss, &bound, "h", &(struct store_unblock){"r", true, 10}, &(struct store_walk){0}, &back, &all,
                     &f->err));
  assert_true(back == 3 && all);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox WHERE state = 'blocked' AND target_host = 'other'"), 3);
  sql(f, "UPDATE outbox SET state = 'claimed', lease_until = '2020-01-02', claimed_by = CASE target_host WHEN 'h' THEN "
         "'one' WHEN 'other' THEN 'four' ELSE 'three' END");
  ok(f, OPS->read_ids(f->ss, TASK_CLAIMED, shard_bit(SHARD_BOUND), "h", ids, 6, 0, limit, &batch, &f->err));
  assert_true(batch->count == 1 && batch->tasks[0].id == 1);
  release(batch);
  ok(f, OPS->lost_bound_claims(f->ss, "h", 60000, 100, &batch, &f->err));
  assert_true(batch->count == 2 && batch->tasks[0].id == 5 && batch->tasks[1].id == 6);
  release(batch);
  ok(f, OPS->lost_bound_claims(f->ss, "other", 60000, 100, &batch, &f->err));
  assert_int_equal(batch->count, 5);
  release(batch);
}

/* Many heads are read in parts, for all routes wait meanwhile: each head once, and those of a key together. */
static void many_heads_are_read_in_parts(void **state) {
  struct fixture *f = *state;
  struct store_heads_part part = {.keys = 1};
  static const uint64_t wanted[][3] = {{2, 1}, {3}, {5}, {4}};
  sql(f,
      "INSERT INTO outbox (id, route, payload, order_key, due_at) VALUES (1, 'r', '', 'a', '2020-01-02'), "
      "(2, 'r', '', 'a', '2020-01-01'), (3, 'r', '', 'a''b', NULL), (4, 's', '', 'a', NULL), (5, 'r', '', 'z', NULL)");
  sql(f, "INSERT INTO outbox_heads (head_id, shard, route, order_key) SELECT id, shard, route, order_key FROM outbox");
  for (size_t i = 0; i < 4; i++) {
    struct seen seen = {0};
    ok(f, OPS->heads(f->ss, &part, see, &seen, &f->err));
    assert_int_equal(seen.count, wanted[i][1] ? 2 : 1);
    for (size_t k = 0; k < seen.count; k++)
      assert_int_equal(seen.id[k], wanted[i][k]);
    assert_true(part.more);
  }
  struct seen none = {0};
  ok(f, OPS->heads(f->ss, &part, see, &none, &f->err));
  assert_true(none.count == 0 && !part.more);
  part = (struct store_heads_part){.keys = 9};
  struct seen seen = {0};
  sql(f, "DELETE FROM outbox_heads WHERE head_id = 5");
  ok(f, OPS->heads(f->ss, &part, see, &seen, &f->err));
  assert_true(seen.count == 4 && !part.more);
}

/* Nobody but their host would try them, and nobody goes before them. Not asked for: what waits for a host that lives,
 * on a route that is paused, elsewhere, or in its own turn; and a head whose task has been another since. */
static void heads_whose_host_is_silent_are_found(void **state) {
  struct fixture *f = *state;
  uint64_t ids[4], after = 0;
  size_t count = 4;
  ROW("(id, route, payload, order_key, target_host, state, failures) VALUES (1, 'r', '', 'k', 'away', 'scheduled', 1), "
      "(2, 'r', '', 'k', 'there', 'scheduled', 1), (3, 'paused', '', 'k', 'away', 'scheduled', 1), "
      "(4, 'r', '', 'k', '', 'scheduled', 1), (5, 'r', '', 'k', 'away', 'blocked', 1), "
      "(6, 'r', '', 'k', 'away', 'scheduled', 1), (7, 'r', '', 'k', 'away', 'scheduled', 0)");
  sql(f, "INSERT INTO outbox_heads (head_id, message_id, failures, shard, route, order_key) "
         "SELECT id, message_id, failures, 1, route, order_key FROM outbox");
  sql(f, "UPDATE outbox SET failures = 2 WHERE id = 6");
  sql(f, "INSERT INTO outbox_routes (route, paused) VALUES ('paused', TRUE), ('r', FALSE)");
  sql(f, "INSERT INTO outbox_instances (id, host, alive_until) VALUES ('i1', 'there', UTC_TIMESTAMP(6) + INTERVAL 1 "
         "HOUR), ('i2', 'away', UTC_TIMESTAMP(6))");
  ok(f, OPS->stranded(f->ss, &after, ids, &count, &f->err));
  assert_true(count == 1 && ids[0] == 1 && after == 4);
  count = 4;
  ok(f, OPS->stranded(f->ss, &after, ids, &count, &f->err));
  assert_true(count == 1 && ids[0] == 7 && after == 0);
}

/* A key goes on only when all of its blocked rows are back: the store says whether one was left behind, because there
 * were more, or because an application holds it. */
static void blocked_rows_that_are_left_behind_are_told(void **state) {
  struct fixture *f = *state;
  const struct store_unblock what = {"r", true, 2};
  struct store_walk walk = {0};
  uint32_t back;
  bool all;
  ROW("(id, route, payload, order_key, shard, state) VALUES (1, 'r', '', 'k', 1, 'blocked'), "
      "(2, 'r', '', 'k', 1, 'blocked'), (3, 'r', '', 'k', 1, 'blocked')");
  ok(f, OPS->unblock(f->ss, &f->leases[1], "h", &what, &walk, &back, &all, &f->err));
  assert_true(back == 2 && all && !walk.end);
  other(f, "START TRANSACTION");
  other(f, "UPDATE outbox SET payload = 'x' WHERE id = 3");
  ok(f, OPS->unblock(f->ss, &f->leases[1], "h", &what, &walk, &back, &all, &f->err));
  assert_true(back == 0 && !all && walk.end);
  other(f, "ROLLBACK");
  walk = (struct store_walk){0};
  ok(f, OPS->unblock(f->ss, &f->leases[1], "h", &what, &walk, &back, &all, &f->err));
  assert_true(back == 1 && all && walk.end);
  ok(f, OPS->unblock(f->ss, &f->leases[1], "h", &what, &walk, &back, &all, &f->err));
  assert_true(back == 0 && all && walk.end);
}

/* A walk goes over rows that still wait too, in the order of the index, and meets each once. */
static void a_walk_over_blocked_rows_goes_on_where_it_stopped(void **state) {
  struct fixture *f = *state;
  const struct store_unblock what = {"r", true, 3};
  struct store_walk walk = {0};
  uint32_t back, steps = 0, sum = 0;
  bool all;
  ROW("(id, route, payload, order_key, shard, due_at, priority) VALUES (100, 'r', '', 'h', 1, '2035-01-01', 5)");
  sql(f, "UPDATE outbox SET failures = 1, attempt = 1");
  sql(f, "INSERT INTO outbox_heads (head_id, message_id, failures, shard, route, order_key) "
         "SELECT id, message_id, 1, 1, 'r', 'h' FROM outbox");
  sql(f, "INSERT INTO outbox (id, route, payload, order_key, shard, state, due_at, priority) SELECT seq, "
         "IF(seq = 20, 'other', 'r'), '', IF(seq %% 4 = 1, 'k', 'h'), 1, 'blocked', '2020-01-01' + INTERVAL seq %% 3 "
         "SECOND, 4 + seq %% 3 FROM seq_1_to_20");
  for (; !walk.end; steps++, sum += back) {
    ok(f, OPS->unblock(f->ss, &f->leases[1], "h", &what, &walk, &back, &all, &f->err));
    assert_true(all);
  }
  assert_int_equal(steps, 19 / 3 + 1);
  assert_int_equal(sum, 5); /* 1, 5, 9, 13, 17 */
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox WHERE state = 'blocked' AND (order_key = 'h' OR route <> 'r')"),
                   15);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox WHERE state = 'blocked'"), 15);
}

/* A head is a task, not a number: one that got the id of a former head, or came back from the dead with a fresh budget,
 * blocks nobody. Eight that were heads in their former lives used to wait for each other for ever. */
static void heads_of_former_lives_block_nobody(void **state) {
  struct fixture *f = *state;
  struct seen seen = {0};
  uint32_t back;
  bool all;
  struct decision d[2];
  bool lost[SHARDS];
  ROW("(id, route, payload, order_key, shard, message_id, failures) VALUES (1, 'r', '', 'k', 1, 'a', 1), "
      "(2, 'r', '', 'k', 1, 'b', 1)");
  for (int i = 0; i < 2; i++) {
    d[i] = decide_on(f, (uint64_t)i + 1, EVENT_RETRY);
    d[i].failures = 2;
    d[i].head = true;
  }
  ok(f, OPS->settle(f->ss, f->leases, SHARDS, d, 2, lost, &f->err));
  ok(f, OPS->heads(f->ss, NULL, see, &seen, &f->err));
  assert_int_equal(seen.count, 2);
  /* Another task may have both ids, and be due in a hundred years. */
  ROW("(id, route, payload, order_key, shard, message_id, due_at) VALUES (3, 'r', '', 'k', 1, 'c', '2199-01-01')");
  sql(f, "INSERT INTO outbox_heads (head_id, message_id, failures, shard, route, order_key) VALUES (3, 'c', 0, 1, 'r', "
         "'k')");
  seen.count = 0;
  ok(f, OPS->heads(f->ss, NULL, see, &seen, &f->err));
  assert_int_equal(seen.count, 2);
  sql(f, "UPDATE outbox SET first_due_at = '2020-01-01' WHERE id = 3"); /* one that was put off */
  seen.count = 0;
  ok(f, OPS->heads(f->ss, NULL, see, &seen, &f->err));
  assert_int_equal(seen.count, 3);
  sql(f, "DELETE FROM outbox WHERE id = 3");
  /* One that has left and is asked for again by its consumer holds nobody back: it used to, for as long as it waited.
   */
  sql(f, "UPDATE outbox SET state = 'awaiting', lease_until = UTC_TIMESTAMP(6) WHERE id = 1");
  sql(f, "UPDATE outbox SET state = 'scheduled', failures = 3, lease_until = NULL WHERE id = 1");
  seen.count = 0;
  ok(f, OPS->heads(f->ss, NULL, see, &seen, &f->err));
  assert_int_equal(seen.count, 1);
  /* Nor does one of a key that differs by a blank at its end, which the server takes for the same. */
  ROW("(id, route, payload, order_key, shard, state) VALUES (9, 'r', '', 'k ', 1, 'blocked')");
  ok(f, OPS->unblock(f->ss, &f->leases[1], "h", &(struct store_unblock){"r", true, 10}, &(struct store_walk){0}, &back,
                     &all, &f->err));
  assert_int_equal(back, 1);
  sql(f, "DELETE FROM outbox");
  ROW("(id, route, payload, order_key, shard, message_id, failures, state) VALUES (1, 'r', '', 'k', 1, 'a', 0, "
      "'blocked'), "
      "(2, 'r', '', 'k', 1, 'c', 5, 'blocked')");
  seen.count = 0;
  ok(f, OPS->heads(f->ss, NULL, see, &seen, &f->err));
  assert_int_equal(seen.count, 0);
  ok(f, OPS->unblock(f->ss, &f->leases[1], "h", &(struct store_unblock){"r", true, 10}, &(struct store_walk){0}, &back,
                     &all, &f->err));
  assert_true(back == 2 && all);
}

/* Whoever was refused an INSERT for the sake of a key holds the entry of that alone: its task could be claimed, and
 * then nothing of it settled. A wary claim passes over it, and waits for nothing. */
static void a_wary_claim_passes_over_what_could_not_be_settled(void **state) {
  struct fixture *f = *state;
  const uint64_t ids[] = {1, 2, 3, 4};
  static const char message_ids[][STORE_ID_MAX + 1] = {"m1", "m2", "m3", "m4"};
  struct task_batch *batch;
  uint64_t lost;
  const struct store_claim claim = {.instance = "me",
                                    .route = "r",
                                    .host = "h",
                                    .leases = &f->leases[1],
                                    .lease_count = 1,
                                    .ids = ids,
                                    .message_ids = message_ids,
                                    .count = 4,
                                    .timeout_ms = 1000,
                                    .lease_ms = 1000,
                                    .limit = {1000, INT64_MAX},
                                    .wary = true};
  ROW("(id, route, payload, shard, message_id, dedup_key) VALUES (1, 'r', '', 1, 'm1', 'd1'), "
      "(2, 'r', '', 1, 'm2', 'd2'), (3, 'r', '', 1, 'm3', NULL), (4, 'r', '', 1, 'm4', NULL)");
  other(f, "START TRANSACTION");
  other(f, "INSERT IGNORE INTO outbox (route, payload, dedup_key) VALUES ('r', '', 'd1')");
  other(f, "INSERT IGNORE INTO outbox (route, payload, message_id) VALUES ('r', '', 'm3')");
  other(f, "INSERT IGNORE INTO outbox (route, payload, id) VALUES ('r', '', 4)");
  ok(f, OPS->claim(f->ss, &claim, &batch, &lost, &f->err));
  assert_true(batch && batch->count == 1 && batch->tasks[0].id == 2);
  release(batch);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox WHERE state = 'claimed'"), 1);
  other(f, "ROLLBACK");
  ok(f, OPS->claim(f->ss, &claim, &batch, &lost, &f->err));
  assert_true(batch && batch->count == 4); /* what is claimed already comes as well */
  release(batch);
}

int main(int argc, char **argv) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, store_setup, store_teardown)
  const struct CMUnitTest tests[] = {
      TEST(a_claim_is_in_the_row),
      TEST(a_claim_compares_what_was_judged),
      TEST(claims_of_the_dead_are_found),
      TEST(a_missing_instance_is_not_dead),
      TEST(a_stale_epoch_claims_nothing),
      TEST(a_row_goes_where_it_is_asked_to),
      TEST(a_row_that_is_to_move_is_not_claimed),
      TEST(an_epoch_that_another_daemon_has_too_claims_nothing),
      TEST(a_row_with_an_order_key_moves_in_its_turn),
      TEST(a_row_that_has_moved_is_waited_for),
      TEST(many_heads_are_read_in_parts),
      TEST(heads_whose_host_is_silent_are_found),
      TEST(claims_of_others_for_our_host_are_told),
      TEST(bound_rows_are_left_to_their_host_while_it_lives),
      TEST(blocked_rows_that_are_left_behind_are_told),
      TEST(a_walk_over_blocked_rows_goes_on_where_it_stopped),
      TEST(heads_of_former_lives_block_nobody),
      TEST(a_wary_claim_passes_over_what_could_not_be_settled),
  };
  return store_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
