/* SPDX-License-Identifier: MIT
 *
 * How many rows of a flooded route are read, or written, at a time while the others wait.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "core/row_pace.h"

static const struct row_limits limits = {.least = 50, .most = 4096, .turn_us = 50 * 1000};

/* So many turns of at most 1,000 rows, each of which takes fixed_us and row_us for each row. Returns the rows of the
 * last one. */
static size_t turns(struct row_pace *pace, unsigned count, int64_t fixed_us, int64_t row_us) {
  size_t did = 0;
  for (unsigned i = 0; i < count; i++) {
    size_t rows = row_pace_rows(pace, &limits);
    did = rows < 1000 ? rows : 1000;
    row_pace_note(pace, &limits, did, fixed_us + (int64_t)did * row_us);
  }
  return did;
}

/* A machine on which 1,000 rows take a second has fewer at a time: a task of another route that has come meanwhile
 * waits for a turn. On a quick one the turns are as large as they may be. */
static void as_many_rows_as_the_machine_is_quick(void **state) {
  struct row_pace pace = {0};
  assert_int_equal(turns(&pace, 20, 1000, 1000), 62);
  assert_int_equal(turns(&pace, 20, 1000, 20), 1000);
  row_pace_note(&pace, &limits, 3, 1000); /* few, and quick: that says nothing */
  assert_int_equal(turns(&pace, 1, 1000, 20), 1000);
}

/* A database that is 100 ms away takes as long over 50 rows as over 1,000: a drain over it would be a tenth as fast. */
static void behind_a_slow_network_as_many_as_ever(void **state) {
  struct row_pace pace = {0};
  size_t rows = 0;
  for (unsigned i = 0; i < 170; i++)
    rows += turns(&pace, 1, 200 * 1000, 20);
  assert_true(rows > 160 * 1000); /* some try fewer, seldomer and seldomer */
  assert_true(turns(&pace, 2, 200 * 1000, 20) >= 500);
}

/* What was left alone since nothing could be saved is tried again: it may be the rows that take the time now. */
static void a_machine_that_becomes_slow_is_noticed_behind_a_slow_network_too(void **state) {
  struct row_pace pace = {0};
  turns(&pace, 40, 200 * 1000, 20);
  assert_true(turns(&pace, 60, 10 * 1000, 1000) <= 62);
}

/* On a machine that others keep busy a turn takes twice as long as the one before, or half as long, by chance. One such
 * turn decided that fewer rows saved nothing: 20 flooded routes were settled in transactions of 0.3 s, for which the
 * others waited. */
static void what_a_turn_takes_by_chance_does_not_decide(void **state) {
  enum { RUNS = 50, TURNS = 40 };
  uint32_t random = 1;
  int64_t rows = 0;
  for (int run = 0; run < RUNS; run++) {
    struct row_pace pace = {0};
    for (int i = 0; i < TURNS; i++) {
      random = random * 1664525 + 1013904223;
      rows += (int64_t)turns(&pace, 1, 10 * 1000, 125 + random / (UINT32_MAX / 250));
    }
  }
  assert_in_range(rows / RUNS / TURNS, 100, 320); /* 400, when one turn decided */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(as_many_rows_as_the_machine_is_quick),
      cmocka_unit_test(behind_a_slow_network_as_many_as_ever),
      cmocka_unit_test(what_a_turn_takes_by_chance_does_not_decide),
      cmocka_unit_test(a_machine_that_becomes_slow_is_noticed_behind_a_slow_network_too),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
