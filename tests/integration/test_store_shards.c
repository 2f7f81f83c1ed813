/* SPDX-License-Identifier: MIT
 *
 * The table of shards is small, and people put their hands into it: a careless DELETE, a TRUNCATE, a backup of this one
 * table. A shard without a row was read by nobody ever again, and a row that was put in again handed out epochs that
 * had been handed out before.
 */
#include <string.h>

#include "integration/store_fixture.h"

#define OPS f->store.ops
#define ROW(values) sql(f, "INSERT INTO outbox " values)

static uint64_t shards_gone(struct fixture *f, struct shard_row rows[STORE_SHARDS_MAX], size_t *count) {
  uint64_t gone = 0;
  ok(f, OPS->shards(f->ss, rows, count, &gone, &f->err));
  return gone;
}

static void expect_gone(struct fixture *f, uint64_t expected) {
  struct shard_row rows[STORE_SHARDS_MAX];
  size_t count;
  assert_int_equal(shards_gone(f, rows, &count), expected);
}

/* The last one too, which leaves no gap behind, and that of bound tasks. */
static void a_deleted_row_comes_back_and_nobody_takes_it_at_once(void **state) {
  struct fixture *f = *state;
  struct shard_row rows[STORE_SHARDS_MAX];
  size_t count;
  uint64_t epoch, gone = shard_bit(1) | shard_bit(SHARDS - 1) | shard_bit(SHARD_BOUND);
  bool lost;
  ROW("(id, route, payload, shard) VALUES (1, 'r', 'x', 1)");
  struct decision done = decide_on(f, 1, EVENT_DONE);
  expect_gone(f, 0);
  sql(f, "DELETE FROM outbox_shards WHERE shard IN (1, %d, 63)", SHARDS - 1);
  expect_gone(f, gone);
  ok(f, OPS->remake_shards(f->ss, gone, 60000, &f->err));
  ok(f, OPS->remake_shards(f->ss, gone, 60000, &f->err)); /* another daemon's */
  assert_int_equal(shards_gone(f, rows, &count), 0);
  assert_int_equal(count, SHARDS);
  assert_true(!rows[1].expired && rows[1].unclean);
  assert_string_equal(rows[1].owner, "");
  ok(f, OPS->acquire(f->ss, "other", &rows[1], 60000, &epoch, &f->err));
  assert_int_equal(epoch, 0);
  ok(f, OPS->settle(f->ss, &f->leases[1], 1, &done, 1, &lost, &f->err));
  assert_true(lost && !done.applied);
  assert_int_equal(ask(f, "SELECT epoch FROM outbox_shards WHERE shard = 63"), 1);
}

/* TRUNCATE, and a migration after it, do not make another number of shards of a table. */
static void an_empty_table_of_shards_is_filled_again(void **state) {
  struct fixture *f = *state;
  sql(f, "TRUNCATE outbox_shards");
  expect_gone(f, shard_bit(SHARDS) - 1 + shard_bit(SHARD_BOUND));
  f->store.ops->close(&f->ss);
  ok(f, OPS->open(f->store.self, "test", 0, &f->ss, &f->err));
  expect_gone(f, shard_bit(SHARDS) - 1 + shard_bit(SHARD_BOUND));
  ok(f, OPS->remake_shards(f->ss, shard_bit(SHARDS) - 1 + shard_bit(SHARD_BOUND), 60000, &f->err));
  expect_gone(f, 0);
}

/* Restored from a backup, or put in by hand with the defaults. A claim of before is one of an earlier epoch all the
 * same, or nobody would ever take it back. */
static void an_epoch_is_never_handed_out_again(void **state) {
  struct fixture *f = *state;
  struct shard_row rows[STORE_SHARDS_MAX];
  size_t count;
  uint64_t epoch, before = f->leases[1].epoch;
  const uint64_t id = 1;
  struct task_batch *batch;
  ROW("(id, route, payload, shard, due_at) VALUES (1, 'r', 'x', 1, '2020-01-01')");
  ok(f, claim_rows(f, &f->leases[1], 1, &id, 1, 1000, 1000, &batch, &(uint64_t){0}));
  assert_int_equal(batch->count, 1);
  release(batch);
  sql(f, "REPLACE INTO outbox_shards (shard) VALUES (1)");
  assert_int_equal(shards_gone(f, rows, &count), 0);
  assert_int_equal(rows[1].epoch, 0);
  ok(f, OPS->acquire(f->ss, "me", &rows[1], 60000, &epoch, &f->err));
  assert_true(epoch > before);
  struct shard_lease lease = {.shard = 1, .epoch = epoch, .owner = "me"};
  ok(f, OPS->lost_claims(f->ss, &lease, 1, 10, &batch, &f->err));
  assert_int_equal(batch->count, 1);
  release(batch);
}

/* A row that leaves the shard of bound tasks goes where its INSERT would have put it. */
static void a_task_moves_to_its_own_shard_beside_a_gap(void **state) {
  struct fixture *f = *state;
  const struct shard_lease bound = {.shard = SHARD_BOUND, .epoch = 1};
  bool lost;
  sql(f, "DELETE FROM outbox_shards WHERE shard IN (0, 1)");
  for (int i = 1; i <= 8; i++)
    sql(f,
        "INSERT INTO outbox (id, route, payload, order_key, target_host, move_to_host) VALUES (%d, 'r', '', 'k%d', "
        "'h', '')",
        i, i);
  for (uint64_t i = 1; i <= 8; i++) {
    struct decision back = decide_on(f, i, EVENT_RELEASE);
    back.shard = SHARD_BOUND;
    ok(f, OPS->settle(f->ss, &bound, 1, &back, 1, &lost, &f->err));
    assert_true(back.applied);
  }
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox WHERE shard = CRC32(order_key) MOD 4"), 8);
}

/* One more than the highest there is would be no epoch: the server refused each acquisition, and nobody said why. */
static void an_epoch_that_no_daemon_writes_is_told_of(void **state) {
  struct fixture *f = *state;
  struct shard_row rows[STORE_SHARDS_MAX];
  uint64_t epoch = 7, gone;
  size_t count;
  sql(f, "UPDATE outbox_shards SET owner = NULL, epoch = 18446744073709551615 WHERE shard = 1");
  ok(f, OPS->shards(f->ss, rows, &count, &gone, &f->err));
  assert_int_equal(OPS->acquire(f->ss, "me", &rows[1], 60000, &epoch, &f->err), STORE_REFUSED);
  assert_int_equal(epoch, 0);
  assert_non_null(strstr(f->err.text, "UPDATE `outbox_shards` SET epoch = 0 WHERE shard = 1"));
  sql(f, "UPDATE `outbox_shards` SET epoch = 0 WHERE shard = 1");
  ok(f, OPS->shards(f->ss, rows, &count, &gone, &f->err));
  ok(f, OPS->acquire(f->ss, "me", &rows[1], 60000, &epoch, &f->err));
  assert_true(epoch > 0 && epoch <= STORE_EPOCH_MAX);
}

int main(int argc, char **argv) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, store_setup, store_teardown)
  const struct CMUnitTest tests[] = {
      TEST(a_deleted_row_comes_back_and_nobody_takes_it_at_once),
      TEST(an_empty_table_of_shards_is_filled_again),
      TEST(an_epoch_is_never_handed_out_again),
      TEST(a_task_moves_to_its_own_shard_beside_a_gap),
      TEST(an_epoch_that_no_daemon_writes_is_told_of),
  };
  return store_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
