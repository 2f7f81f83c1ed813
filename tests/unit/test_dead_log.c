/* SPDX-License-Identifier: MIT
 *
 * tests/unit/test_dead_log.c - how many lines dead tasks may make.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/dead_log.h"

#define S INT64_C(1000000)

/* Lines of `count` tasks that die at one moment; *sum: how many were told as unsaid. */
static int lines(struct dead_log *log, int64_t now_us, int count, uint64_t *sum) {
  int said = 0;
  uint64_t unsaid;
  for (int i = 0; i < count; i++)
    if (dead_log_due(log, now_us, &unsaid)) {
      said++;
      *sum += unsaid;
    }
  return said;
}

static void each_has_its_line_while_they_are_few(void **state) {
  struct dead_log log = {0};
  uint64_t sum = 0;
  assert_int_equal(lines(&log, 5 * S, 50, &sum), 50);
  for (int64_t second = 6; second < 1000; second++)
    assert_int_equal(lines(&log, second * S, 1, &sum), 1);
  assert_int_equal(lines(&log, 1100 * S, 50, &sum), 50);
  assert_int_equal(sum, 0);
}

static void many_have_one_a_second_and_are_counted(void **state) {
  struct dead_log log = {0};
  uint64_t sum = 0;
  assert_int_equal(lines(&log, 5 * S, 1000, &sum), 50);
  assert_int_equal(sum, 0);
  assert_int_equal(lines(&log, 6 * S, 1000, &sum), 1);
  assert_int_equal(sum, 950);
  assert_int_equal(lines(&log, 7 * S - 1, 1000, &sum), 0);
  assert_int_equal(lines(&log, 7 * S, 1, &sum), 1);
  assert_int_equal(sum, 950 + 999 + 1000);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(each_has_its_line_while_they_are_few),
                                     cmocka_unit_test(many_have_one_a_second_and_are_counted)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
