/* SPDX-License-Identifier: MIT
 *
 * tests/unit/test_kafka_search.c - the first offset behind an obstacle is found, in few steps, and none behind it is
 * passed over.
 */
#include "plugins/kafka/kafka_search.h"

#include <stdarg.h>
#include <stdlib.h>

#include <setjmp.h>

#include <cmocka.h>

#include "plugins/kafka/kafka_common.h"

/* Searches a log whose obstacle reaches from `taken` to `end`, which is behind it; returns the steps. */
static int steps_past(int64_t taken, int64_t end, int64_t high, bool quiet) {
  struct kafka_search search;
  int steps = 1;
  kafka_search_begin(&search, 7000, taken, high, 0);
  for (bool found = false; !found && search.obstacle >= 0; steps++) {
    assert_true(search.at > taken && search.at < high);
    found = kafka_search_saw(&search, search.at < end ? 7000 : quiet ? KAFKA_SEARCH_NOTHING : search.at);
  }
  assert_int_equal(search.at, end);
  assert_int_equal(search.obstacle, -1);
  return steps;
}

static void every_end_is_found(void **state) {
  for (int64_t end = 11; end <= 80; end++)
    for (int64_t high = end; high <= 81; high++) {
      steps_past(10, end, high, false);
      steps_past(10, end, high, true);
    }
}

static void a_large_obstacle_takes_few_steps(void **state) {
  assert_true(steps_past(0, 20000, 50000, false) <= 32);
  assert_true(steps_past(5, 1000000, INT64_C(1) << 40, false) <= 42);
  assert_true(steps_past(5, INT64_C(1) << 61, INT64_MAX - 1, false) <= 130);
}

static void an_obstacle_of_one_at_the_end_takes_one_step(void **state) {
  assert_int_equal(steps_past(10, 11, 11, false), 1);
  struct kafka_search search;
  kafka_search_begin(&search, 7000, 10, 4, 0); /* the log was cut short meanwhile */
  assert_int_equal(search.at, 4);
  assert_int_equal(search.obstacle, -1);
}

/* What came first was not seen, for the broker was slow: the end is too early, and the next search goes on there. */
static void an_end_that_is_missed_is_never_too_late(void **state) {
  for (int blind = 0; blind < 12; blind++) {
    struct kafka_search search;
    int step = 0;
    kafka_search_begin(&search, 7000, 10, 500, 0);
    for (bool found = false; !found && search.obstacle >= 0; step++)
      found = kafka_search_saw(&search, search.at < 300 && step != blind ? 7000 : KAFKA_SEARCH_NOTHING);
    assert_true(search.at > 10 && search.at <= 300);
  }
}

/* Of two that look the same, what is between is not passed over. */
static void steps_of_one_come_first(void **state) {
  struct kafka_search search;
  kafka_search_begin(&search, 10, 10, 500, 3);
  for (int64_t at = 11; at <= 14; at++) {
    assert_int_equal(search.at, at);
    assert_false(kafka_search_saw(&search, 10));
  }
  assert_int_equal(search.at, 16);
  assert_false(kafka_search_saw(&search, KAFKA_SEARCH_NOTHING));
  assert_int_equal(search.at, 15);
  assert_true(kafka_search_saw(&search, 15));
  assert_int_equal(search.obstacle, -1);
}

static void an_offset_is_believed_within_the_log(void **state) {
  static const struct {
    int64_t last, claimed, high;
    bool believed;
  } rows[] = {
      {4, 5, 6, true},   {4, 9, 10, true}, /* behind records that a transaction took back, or that were compacted away
                                            */
      {4, 5, -1, true},                    /* how far the log goes is not known: the next one needs no proof */
      {4, 6, -1, false}, {4, 10, 10, false}, {4, 2000000000, 6, false}, {4, 2, 6, true}, /* read once more */
      {-1, 0, 1, true},  {-1, 17, 18, true}, {-1, 17, 17, false},       {-1, 0, -1, false},
  };
  for (size_t i = 0; i < ARRAY_LEN(rows); i++)
    assert_int_equal(kafka_search_believes(rows[i].last, rows[i].claimed, rows[i].high), rows[i].believed);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_end_is_found),
      cmocka_unit_test(a_large_obstacle_takes_few_steps),
      cmocka_unit_test(an_obstacle_of_one_at_the_end_takes_one_step),
      cmocka_unit_test(an_end_that_is_missed_is_never_too_late),
      cmocka_unit_test(steps_of_one_come_first),
      cmocka_unit_test(an_offset_is_believed_within_the_log),
  };
  return cmocka_run_group_tests_name("kafka search", tests, NULL, NULL);
}
