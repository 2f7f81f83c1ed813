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

int main(int argc, char **argv) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, store_setup, store_teardown)
  static const struct CMUnitTest tests[] = {
      TEST(as_many_rows_fit_as_their_content_allows),
      TEST(a_large_row_waits_for_the_small_ones_before_it),
      TEST(headers_and_checkpoints_count_too),
      TEST(no_more_large_rows_are_read_than_could_fit),
  };
  return store_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
