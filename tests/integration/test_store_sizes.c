/* SPDX-License-Identifier: MIT
 *
 * What is moved in one transaction is bounded by the size of the rows, not by their number alone.
 */
#include <stdlib.h>
#include <string.h>

#include "integration/store_fixture.h"
#include "outbox/row_sizes.h"

#define OPS f->store.ops

enum { KB = 1024, MB = 1024 * KB };

struct ask {
  uint64_t ids[1000];
  size_t count, fit;
};

static bool ask_unit(struct store_session *ss, void *arg, struct err *err) {
  struct ask *ask = arg;
  return row_sizes_fit(ss, "test", ask->ids, ask->count, ROW_SIZES_MOST, &ask->fit, err);
}

/* How many of the rows first .. first + count - 1 fit. */
static size_t fit(struct fixture *f, uint64_t first, size_t count) {
  static struct ask ask;
  ask.count = count;
  for (size_t i = 0; i < count; i++)
    ask.ids[i] = first + i;
  ok(f, session_run(f->ss, "test", ask_unit, &ask, &f->err));
  return ask.fit;
}

static void rows(struct fixture *f, uint64_t first, size_t count, size_t bytes) {
  sql(f,
      "INSERT INTO outbox (id, route, payload, shard, due_at) SELECT %llu + seq - 1, 'r', REPEAT('x', %zu - 2), 1, "
      "'2020-01-01' FROM seq_1_to_%zu",
      (unsigned long long)first, bytes, count);
}

static void as_many_rows_fit_as_their_content_allows(void **state) {
  struct fixture *f = *state;
  rows(f, 1, 1000, 100);
  rows(f, 2001, 300, 3 * KB);
  rows(f, 3001, 20, 100 * KB);
  rows(f, 4001, 3, 8 * MB);
  assert_int_equal(fit(f, 1, 1000), 1000);
  assert_int_equal(fit(f, 2001, 250), ROW_SIZES_MOST / (3 * KB));
  assert_int_equal(fit(f, 2001, 100), 100);
  assert_int_equal(fit(f, 3001, 20), 5);
  assert_int_equal(fit(f, 4001, 3), 1);
  assert_int_equal(fit(f, 4001, 1), 1);
  assert_int_equal(fit(f, 9001, 10), 10); /* no row is there */
}

static void a_large_row_waits_for_the_small_ones_before_it(void **state) {
  struct fixture *f = *state;
  rows(f, 1, 100, 100);
  rows(f, 101, 1, 8 * MB);
  rows(f, 102, 100, 100);
  assert_int_equal(fit(f, 1, 201), 100);
  assert_int_equal(fit(f, 101, 101), 1);
  rows(f, 1001, 10, 20 * KB);
  rows(f, 1011, 30, 100 * KB);
  assert_int_equal(fit(f, 1001, 40), 10 + (ROW_SIZES_MOST - 10 * 20 * KB) / (100 * KB));
}

static void headers_and_checkpoints_count_too(void **state) {
  struct fixture *f = *state;
  sql(f, "INSERT INTO outbox (id, route, payload, headers, checkpoint, shard, due_at) SELECT seq, 'r', '', "
         "CONCAT('{\"a\": \"', REPEAT('h', 40000), '\"}'), REPEAT('c', 60000), 1, '2020-01-01' FROM seq_1_to_10");
  assert_int_equal(fit(f, 1, 10), 5);
}

/* The pages that the server reads for it are those of the few that it asks about. */
static void no_more_large_rows_are_read_than_could_fit(void **state) {
  struct fixture *f = *state;
  char **scripts;
  rows(f, 1, 50, MB);
  rows(f, 101, 1000, 100);
  assert_int_equal(fit(f, 101, 1), 1); /* MySQL ends a session that was idle while the rows were made: it is new now */
  capture_start();
  assert_int_equal(fit(f, 1, 50), 1);
  assert_int_equal(capture_end(&scripts), 1);
  assert_non_null(strstr(scripts[0], "LIMIT 4"));
  free(scripts[0]);
  capture_start();
  assert_int_equal(fit(f, 101, 1000), 1000);
  assert_int_equal(capture_end(&scripts), 1);
  free(scripts[0]);
}

static void rows_with_payloads(struct fixture *f) {
  sql(f,
      "INSERT INTO outbox (id, route, payload, shard, due_at) SELECT seq, 'r', REPEAT('x', IF(seq > 3, %d, 10)), 1, "
      "'2020-01-01' FROM seq_1_to_6",
      STORE_TRANSACTION_BYTES * 2 / 3);
}

static uint32_t hold(struct fixture *f) {
  const struct store_routes which = {TASK_SCHEDULED, 5, (const char *const[]){"r"}, 1, 0, 10};
  uint32_t moved;
  ok(f, OPS->hold(f->ss, &f->leases[1], &which, &moved, &f->err));
  return moved;
}

static uint32_t unhold(struct fixture *f, bool *all) {
  uint32_t moved;
  ok(f, OPS->unhold(f->ss, &f->leases[1], "r", 10, &moved, all, &f->err));
  return moved;
}

static void as_many_rows_are_moved_as_one_transaction_may_write(void **state) {
  struct fixture *f = *state;
  uint32_t moved;
  bool all;
  rows_with_payloads(f);
  assert_int_equal(hold(f), 4);
  assert_int_equal(hold(f), 1);
  assert_int_equal(hold(f), 1);
  assert_int_equal(hold(f), 0);
  for (uint32_t wanted = 4, left = 3; left; wanted = 1, left--) {
    assert_int_equal(unhold(f, &all), wanted);
    assert_int_equal(all, left == 1);
  }
  sql(f, "UPDATE outbox SET state = 'blocked', order_key = 'k'");
  for (uint32_t wanted = 4, left = 3; left; wanted = 1, left--) {
    ok(f, OPS->unblock(f->ss, &f->leases[1], "h", &(struct store_unblock){"r", true, 10}, &(struct store_walk){0},
                       &moved, &all, &f->err));
    assert_int_equal(moved, wanted);
    assert_int_equal(all, left == 1);
  }
}

/* A large row that somebody holds is all that one transaction would take: the next one takes those behind it. */
static void large_rows_that_are_locked_stop_no_others(void **state) {
  struct fixture *f = *state;
  bool all;
  rows_with_payloads(f);
  sql(f, "UPDATE outbox SET state = 'held'");
  other(f, "BEGIN");
  for (int id = 1; id <= 4; id++)
    other(f, "SELECT id FROM outbox WHERE id = %d FOR UPDATE", id);
  for (int i = 0; i < 6 && ask(f, "SELECT COUNT(*) FROM outbox WHERE state = 'scheduled'") < 2; i++) {
    (void)unhold(f, &all);
    assert_false(all);
  }
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox WHERE id > 4 AND state = 'scheduled'"), 2);
  other(f, "ROLLBACK");
  assert_int_equal(unhold(f, &all), 4);
  assert_true(all);
}

static void delete_two(struct fixture *f) { sql(f, "DELETE FROM outbox WHERE id IN (1, 4)"); }

static void a_row_that_vanishes_before_it_is_locked_is_not_moved(void **state) {
  struct fixture *f = *state;
  bool all;
  rows_with_payloads(f);
  sql(f, "UPDATE outbox SET state = 'held'");
  fault_call(f, "START TRANSACTION", delete_two);
  assert_int_equal(unhold(f, &all), 2);
  assert_false(all);
  assert_int_equal(unhold(f, &all), 1);
  assert_int_equal(unhold(f, &all), 1);
  assert_true(all);
}

int main(int argc, char **argv) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, store_setup, store_teardown)
  static const struct CMUnitTest tests[] = {
      TEST(as_many_rows_fit_as_their_content_allows),
      TEST(a_large_row_waits_for_the_small_ones_before_it),
      TEST(headers_and_checkpoints_count_too),
      TEST(no_more_large_rows_are_read_than_could_fit),
      TEST(as_many_rows_are_moved_as_one_transaction_may_write),
      TEST(large_rows_that_are_locked_stop_no_others),
      TEST(a_row_that_vanishes_before_it_is_locked_is_not_moved),
  };
  return store_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
