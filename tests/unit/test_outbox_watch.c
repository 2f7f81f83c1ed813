/* SPDX-License-Identifier: MIT
 *
 * tests/unit/test_outbox_watch.c - which rows may take longer than database.read_timeout.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "outbox/db_watch.h"

#define LIMIT_US (INT64_C(2) * 1000 * 1000)
#define LEAST (UINT64_C(2) * 1000 * DB_WATCH_SLOWEST)

static void rows_that_come_may_go_on_for_some_time(void **state) {
  struct db_watch_flow flow = {0};
  for (unsigned i = 1; i < DB_WATCH_TIMES; i++)
    assert_true(db_watch_goes_on(&flow, LIMIT_US, true, 1000 + i * LEAST));
  assert_false(db_watch_goes_on(&flow, LIMIT_US, true, 1000 + DB_WATCH_TIMES * LEAST));
}

/* What a connection had received before is not known the first time. */
static void rows_that_trickle_may_not(void **state) {
  struct db_watch_flow flow = {0};
  assert_true(db_watch_goes_on(&flow, LIMIT_US, true, 1000 * LEAST));
  assert_false(db_watch_goes_on(&flow, LIMIT_US, true, 1001 * LEAST - 1));
}

static void rows_of_which_nothing_is_known_are_taken_to_come(void **state) {
  struct db_watch_flow flow = {0};
  for (unsigned i = 1; i < DB_WATCH_TIMES; i++)
    assert_true(db_watch_goes_on(&flow, LIMIT_US, false, 0));
  assert_false(db_watch_goes_on(&flow, LIMIT_US, false, 0));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rows_that_come_may_go_on_for_some_time),
      cmocka_unit_test(rows_that_trickle_may_not),
      cmocka_unit_test(rows_of_which_nothing_is_known_are_taken_to_come),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
