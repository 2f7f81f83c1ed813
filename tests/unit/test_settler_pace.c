/* SPDX-License-Identifier: MIT
 *
 * How much the settler writes at a time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "core/settler.h"

/* What is free again is settled soon: as many at once as are looked at quickly. */
static void as_many_busy_ones_are_tried_at_once_as_cost_little(void **state) {
  size_t rows = 1;
  for (unsigned i = 0; i < 20; i++)
    rows = settler_again_rows(rows, 5000);
  assert_int_equal(rows, 4096);
  for (unsigned i = 0; i < 20; i++)
    rows = settler_again_rows(rows, 1000 * 1000);
  assert_int_equal(rows, 1);
}

/* A server that needs 100 us per KiB gets batches that keep the others waiting for 20 ms at most, a quicker one larger
 * ones. */
static void a_batch_of_large_ones_is_as_large_as_the_server_is_quick(void **state) {
  size_t bytes = 16 * 1024;
  for (unsigned i = 0; i < 20; i++)
    bytes = settler_large_bytes(bytes, (int64_t)bytes / 1024 * 100);
  assert_int_equal(bytes, 128 * 1024);
  for (unsigned i = 0; i < 20; i++)
    bytes = settler_large_bytes(bytes, 5000);
  assert_int_equal(bytes, 512 * 1024);
  for (unsigned i = 0; i < 20; i++)
    bytes = settler_large_bytes(bytes, 1000 * 1000);
  assert_int_equal(bytes, 16 * 1024);
}

/* One of 60 MB took 1.5 s. The wait has an end: the database may have been away meanwhile. */
static void after_a_huge_row_the_others_have_nine_tenths_of_the_time(void **state) {
  assert_int_equal(settler_huge_rest_us(100 * 1000), 900 * 1000);
  assert_int_equal(settler_huge_rest_us(INT64_C(3600) * 1000 * 1000), 10 * 1000 * 1000);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(as_many_busy_ones_are_tried_at_once_as_cost_little),
      cmocka_unit_test(a_batch_of_large_ones_is_as_large_as_the_server_is_quick),
      cmocka_unit_test(after_a_huge_row_the_others_have_nine_tenths_of_the_time),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
