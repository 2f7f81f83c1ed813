/* SPDX-License-Identifier: MIT
 *
 * tests/unit/test_log_quota.c - how many lines one place may write, such as that of dead tasks.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/base/log_repeat.h"

#define S INT64_C(1000000)

/* Lines of `count` at one moment; *sum: how many were told as unsaid. */
static int lines(struct log_quota *quota, int64_t now_us, int count, uint64_t *sum) {
  int said = 0;
  uint64_t unsaid;
  for (int i = 0; i < count; i++)
    if (log_quota_due(quota, now_us, &unsaid)) {
      said++;
      *sum += unsaid;
    }
  return said;
}

static void each_has_its_line_while_they_are_few(void **state) {
  struct log_quota quota = {0};
  uint64_t sum = 0;
  assert_int_equal(lines(&quota, 5 * S, 50, &sum), 50);
  for (int64_t second = 6; second < 1000; second++)
    assert_int_equal(lines(&quota, second * S, 1, &sum), 1);
  assert_int_equal(lines(&quota, 1100 * S, 50, &sum), 50);
  assert_int_equal(sum, 0);
}

static void many_have_one_a_second_and_are_counted(void **state) {
  struct log_quota quota = {0};
  uint64_t sum = 0;
  assert_int_equal(lines(&quota, 5 * S, 1000, &sum), 50);
  assert_int_equal(sum, 0);
  assert_int_equal(lines(&quota, 6 * S, 1000, &sum), 1);
  assert_int_equal(sum, 950);
  assert_int_equal(lines(&quota, 7 * S - 1, 1000, &sum), 0);
  assert_int_equal(lines(&quota, 7 * S, 1, &sum), 1);
  assert_int_equal(sum, 950 + 999 + 1000);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(each_has_its_line_while_they_are_few),
                                     cmocka_unit_test(many_have_one_a_second_and_are_counted)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
