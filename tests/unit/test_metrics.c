/* SPDX-License-Identifier: MIT
 *
 * The figures on the page come out of histograms: they may be as coarse as a bucket, and never beyond what was seen.
 */
#include "core/metrics.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* Tasks that were up to 112 s late used to be shown as up to 300 s late, and those of 310 s as 59 minutes. */
static void a_quantile_is_never_more_than_the_largest_value(void **state) {
  struct histogram histogram = {0};
  for (int i = 0; i < 1000; i++)
    histogram_add(&histogram, 112000000);
  assert_in_range(histogram_quantile_us(&histogram, 0.99), 60000000, 112000000);
  for (int i = 0; i < 1000; i++)
    histogram_add(&histogram, 310000000);
  assert_in_range(histogram_quantile_us(&histogram, 0.99), 300000000, 310000000);
  assert_int_equal(histogram_quantile_us(&histogram, 1), 310000000);
}

static void beyond_the_last_bucket_it_is_still_a_value(void **state) {
  struct histogram histogram = {0};
  assert_int_equal(histogram_quantile_us(&histogram, 0.5), 0);
  histogram_add(&histogram, 7200000000);
  assert_in_range(histogram_quantile_us(&histogram, 0.5), 3600000000, 7200000000);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_quantile_is_never_more_than_the_largest_value),
      cmocka_unit_test(beyond_the_last_bucket_it_is_still_a_value),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
