/* SPDX-License-Identifier: MIT
 *
 * Results whose rows, or whose records, are large: a transaction takes as many as hold little enough.
 */
#include <string.h>

#include "integration/store_answers.h"

enum { KB = 1024 };

/* Tasks m1.. that wait for a result, with that many bytes each. */
static void awaiting_with(struct fixture *f, int first, int count, size_t bytes) {
  ROW("(id, route, payload, shard, message_id, state, attempt, lease_until, published_at, due_at) SELECT %d + seq, "
      "'r', "
      "REPEAT('x', %zu), 0, CONCAT('m', %d + seq), 'awaiting', 1, '2035-01-01', '2020-01-01 00:00:01', '2020-01-01' "
      "FROM seq_1_to_%d",
      first - 1, bytes, first - 1, count);
}

static struct store_result done(int task) {
  struct store_result result = answer(1, RESULT_DONE);
  snprintf(result.record.message_id, sizeof result.record.message_id, "m%d", task);
  return result;
}

static void apply_batch(struct fixture *f, struct store_result *results, size_t count) {
  ok(f, OPS->settle_results(f->ss, results, count, decide, NULL, &f->err));
}

static size_t count_applied(const struct store_result *results, size_t count) {
  size_t applied = 0;
  for (size_t i = 0; i < count; i++) {
    applied += results[i].fate == RESULT_APPLIED;
    assert_true(results[i].fate == RESULT_APPLIED || (results[i].fate == RESULT_BUSY && results[i].postponed));
    assert_true(results[i].fate == RESULT_APPLIED || results[i].behind);
  }
  return applied;
}

/* Gives those that were postponed again until none is left; returns how many calls it took. */
static unsigned apply_all(struct fixture *f, struct store_result *results, size_t count) {
  unsigned calls = 0;
  while (count > 0) {
    size_t left = 0;
    apply_batch(f, results, count);
    assert_true(count_applied(results, count) > 0); /* each call comes on, however large rows are */
    for (size_t i = 0; i < count; i++)
      if (results[i].fate == RESULT_BUSY)
        results[left++] = results[i];
    count = left;
    calls++;
  }
  return calls;
}

/* What is kept is written once more: 110 rows of 8 MB in one transaction took longer than an answer of the server is
 * waited for, and were begun again without end; rows of 900 kB kept the results of all routes for 20 s (P8). */
static void a_transaction_takes_what_has_little_content(void **state) {
  struct fixture *f = *state;
  enum { LARGE = 30, MIDDLE = 40, SMALL = 100 };
  struct store_result large[LARGE], middle[MIDDLE], small[SMALL];
  awaiting_with(f, 1, LARGE, 900 * KB);
  awaiting_with(f, 101, MIDDLE, 50 * KB);
  awaiting_with(f, 201, SMALL, KB);
  for (int i = 0; i < LARGE; i++)
    large[i] = done(1 + i);
  for (int i = 0; i < MIDDLE; i++)
    middle[i] = done(101 + i);
  for (int i = 0; i < SMALL; i++)
    small[i] = done(201 + i);
  apply_batch(f, large, LARGE);
  assert_int_equal(count_applied(large, LARGE), 1);
  assert_true(large[0].measured && large[0].row_bytes >= 900 * KB);
  assert_int_equal(apply_all(f, large + 1, LARGE - 1), LARGE - 1);
  assert_int_equal(apply_all(f, middle, MIDDLE), MIDDLE / 10);
  assert_int_equal(apply_all(f, small, SMALL), 1);
  assert_true(small[0].measured && small[0].row_bytes < 2 * KB);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_history WHERE state = 'done'"), LARGE + MIDDLE + SMALL);
}

/* To lock a large row is to read all of it, which takes milliseconds. */
static void few_large_rows_are_read_at_a_time(void **state) {
  struct fixture *f = *state;
  enum { LARGE = 20, SMALL = 100 };
  static struct store_result r[LARGE + SMALL];
  awaiting_with(f, 1, LARGE, 900 * KB);
  awaiting_with(f, 101, SMALL, 100);
  for (int i = 0; i < LARGE + SMALL; i++)
    r[i] = done(i < LARGE ? 1 + i : 101 + i - LARGE);
  apply_batch(f, r, LARGE + SMALL);
  size_t read = 0;
  for (int i = 0; i < LARGE + SMALL; i++)
    read += r[i].measured;
  assert_int_equal(read, 16);
  apply_batch(f, r + LARGE, SMALL);
  assert_int_equal(count_applied(r + LARGE, SMALL), SMALL);
}

/* Others go on where there is room, and none before one of its task that was given before it. */
static void a_large_row_waits_without_the_small_ones(void **state) {
  struct fixture *f = *state;
  enum { N = 7 };
  awaiting_with(f, 1, 3, KB);
  awaiting_with(f, 11, 2, 900 * KB);
  awaiting_with(f, 21, 1, KB);
  struct store_result r[N] = {done(11), done(1), done(12), done(11), done(2), done(21), done(3)};
  r[0].record.status = RESULT_PROGRESS;
  apply_batch(f, r, N);
  static const bool applied[N] = {false, true, false, false, true, true, true};
  for (int i = 0; i < N; i++)
    assert_int_equal(r[i].fate == RESULT_APPLIED, applied[i]);
  struct store_result again[3] = {r[0], r[2], r[3]};
  apply_batch(f, again, 3);
  assert_true(again[0].fate == RESULT_APPLIED && again[0].event == EVENT_PROGRESS);
  assert_true(again[1].fate == RESULT_BUSY && again[1].postponed);
  assert_true(again[2].fate == RESULT_BUSY && again[2].behind && !again[2].postponed);
  struct store_result rest[2] = {again[1], again[2]};
  assert_int_equal(apply_all(f, rest, 2), 2);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_history WHERE state = 'done'"), 6);
}

/* Nobody waits for more than one large record at a time: what fits nothing is kept with its content. */
static void a_transaction_keeps_what_has_little_content(void **state) {
  struct fixture *f = *state;
  enum { N = 8, BYTES = 600 * KB };
  static char body[BYTES];
  struct store_result r[N];
  awaiting_with(f, 1, 2, KB);
  memset(body, 'x', sizeof body);
  for (int i = 0; i < N - 2; i++) {
    r[i] = (struct store_result){.broken = "no JSON", .source = "bus", .body = {body, BYTES}};
    r[i].origin = i % 2 ? "a" : "b";
  }
  r[N - 2] = done(1);
  r[N - 1] = done(2);
  apply_batch(f, r, N);
  assert_int_equal(r[0].fate, RESULT_BROKEN);
  for (int i = 1; i < N; i++)
    assert_true(r[i].fate == RESULT_BUSY && r[i].behind && r[i].postponed);
  apply_batch(f, r + N - 2, 2);
  assert_int_equal(count_applied(r + N - 2, 2), 2);
  for (int i = 1; i < N - 2; i++) {
    apply_batch(f, r + i, (size_t)(N - 2 - i));
    assert_int_equal(r[i].fate, RESULT_BROKEN);
  }
}

/* One that is larger than all that a transaction is to hold, with a row of any size: it never got through, and the
 * results of its route waited behind it for ever. */
static void a_record_that_leaves_no_room_goes_alone(void **state) {
  struct fixture *f = *state;
  enum { BYTES = 600 * KB };
  static char body[BYTES];
  awaiting_with(f, 1, 2, KB);
  awaiting_with(f, 3, 1, 900 * KB);
  memset(body, 'x', sizeof body);
  struct store_result r[3] = {done(1), done(2), done(3)};
  r[0].body = r[2].body = (struct duebox_bytes){body, BYTES};
  assert_int_equal(apply_all(f, r, 3), 3);
  assert_int_equal(ask(f, "SELECT COUNT(*) FROM outbox_history WHERE state = 'done'"), 3);
}

int main(int argc, char **argv) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, store_setup, store_teardown)
  static const struct CMUnitTest tests[] = {
      TEST(a_transaction_takes_what_has_little_content), TEST(few_large_rows_are_read_at_a_time),
      TEST(a_large_row_waits_without_the_small_ones),    TEST(a_transaction_keeps_what_has_little_content),
      TEST(a_record_that_leaves_no_room_goes_alone),
  };
  return store_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
