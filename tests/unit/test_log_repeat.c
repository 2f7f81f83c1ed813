/* SPDX-License-Identifier: MIT
 *
 * tests/unit/test_log_repeat.c - trouble that repeats itself: when it is said, and with which count.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/base/log_repeat.h"

#define S INT64_C(1000000)

/* How many lines a trouble makes that comes every 100 ms from `from` to `to` seconds; *sum: their counts. */
static int lines(struct log_repeat *repeat, const char *text, int64_t from, int64_t to, uint64_t *sum) {
  int said = 0;
  uint64_t unsaid;
  for (int64_t now = from * S; now < to * S; now += S / 10)
    if (log_repeat_due(repeat, text, now, &unsaid)) {
      *sum += unsaid;
      said++;
    }
  return said;
}

static void it_is_said_at_once_and_then_seldom(void **state) {
  struct log_repeat repeat = {0};
  uint64_t sum = 0;
  assert_int_equal(lines(&repeat, "down", 1000, 1010, &sum), 1);
  assert_int_equal(sum, 0);
  assert_int_equal(lines(&repeat, "down", 1010, 1071, &sum), 3); /* after 10, 30 and 70 seconds */
  assert_int_equal(sum, 99 + 199 + 399);
  sum = 0;
  assert_int_equal(lines(&repeat, "down", 1071, 1371, &sum), 5); /* once a minute */
  assert_int_equal(sum, 5 * 599);
}

static void another_text_is_said_at_once(void **state) {
  struct log_repeat repeat = {0};
  uint64_t sum = 0, unsaid;
  assert_int_equal(lines(&repeat, "down", 1, 5, &sum), 1);
  assert_true(log_repeat_due(&repeat, "no rights", 5 * S, &unsaid));
  assert_int_equal(lines(&repeat, "down", 5, 8, &sum), 0); /* and the first is not new because of it */
}

static void texts_that_take_turns_are_seldom_too(void **state) {
  static const char *const texts[] = {"a", "b", "c", "d"};
  struct log_repeat repeat = {0};
  uint64_t unsaid;
  int said = 0;
  for (int i = 0; i < 80; i++)
    said += log_repeat_due(&repeat, texts[i % 4], (1000 + i / 10) * S, &unsaid);
  assert_int_equal(said, 4);
}

static void after_a_quiet_minute_it_is_new(void **state) {
  struct log_repeat repeat = {0};
  uint64_t sum = 0, unsaid = 7;
  assert_int_equal(lines(&repeat, "down", 1000, 1300, &sum), 7);
  assert_true(log_repeat_due(&repeat, "down", 1361 * S, &unsaid));
  assert_int_equal(unsaid, 0);
  sum = 0;
  assert_int_equal(lines(&repeat, "down", 1362, 1372, &sum), 1); /* ten seconds later, as at first */
}

static void more_texts_than_places(void **state) {
  struct log_repeat repeat = {0};
  uint64_t unsaid;
  for (int i = 0; i < 6; i++) {
    char text[] = {(char)('a' + i), '\0'};
    assert_true(log_repeat_due(&repeat, text, (1 + i) * S, &unsaid));
  }
  assert_false(log_repeat_due(&repeat, "f", 8 * S, &unsaid));
  assert_false(log_repeat_due(&repeat, "c", 8 * S, &unsaid));
  assert_true(log_repeat_due(&repeat, "a", 8 * S, &unsaid)); /* forgotten for the sake of a later one */
}

/* Whoever may insert rows chooses what is said of them, such as of targets that do not exist: the log does not grow
 * with their number (17 MB a minute). */
static void texts_that_are_all_new_have_a_quota(void **state) {
  struct log_repeat repeat = {0};
  uint64_t sum = 0, unsaid;
  int said = 0;
  for (int i = 0; i < 10000; i++) {
    char text[] = {(char)('a' + i % 25), (char)('a' + i / 25 % 20), (char)('a' + i / 500), '\0'};
    if (log_repeat_due(&repeat, text, 1000 * S + i * (S / 1000), &unsaid)) {
      sum += repeat.others;
      said++;
    }
  }
  assert_in_range(said, 59, 61); /* in ten seconds */
  assert_in_range(sum + repeat.quota.unsaid, 10000 - 61, 10000 - 59);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(it_is_said_at_once_and_then_seldom),
                                     cmocka_unit_test(another_text_is_said_at_once),
                                     cmocka_unit_test(texts_that_take_turns_are_seldom_too),
                                     cmocka_unit_test(after_a_quiet_minute_it_is_new),
                                     cmocka_unit_test(more_texts_than_places),
                                     cmocka_unit_test(texts_that_are_all_new_have_a_quota)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
