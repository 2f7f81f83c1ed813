/* SPDX-License-Identifier: MIT
 *
 * Which decisions travel together as a list of ids: those that write the same, published within a millisecond.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "outbox/write_group.h"

#define MS INT64_C(1000)

static struct decision published(uint64_t id, int64_t at_us) {
  return (struct decision){
      .id = id, .from = TASK_SCHEDULED, .event = EVENT_PUBLISHED, .attempt = 1, .delay_us = 5, .published_us = at_us};
}

static void the_same_within_a_millisecond_is_one_group(void **state) {
  struct decision d[] = {published(1, 100 * MS + 900), published(2, 101 * MS + 100), published(3, 100 * MS),
                         published(4, 100 * MS + 999)};
  struct decision *list[] = {&d[0], &d[1], &d[2], &d[3]};
  group_sort(list, 4);
  assert_int_equal(group_first(list, 4), 3);
  assert_int_equal(list[2]->published_us, 100 * MS + 999); /* the latest speaks for the group */
  assert_int_equal(group_first(list + 3, 1), 1);
  assert_int_equal(list[3]->id, 2);
}

static void another_value_is_another_group(void **state) {
  struct result_record record = {.attempt = 7, .progress = -1};
  struct decision base = published(1, MS);
  struct decision others[] = {base, base, base, base, base, base, base, base, base};
  others[0].from = TASK_CLAIMED;
  others[1].attempt_from = 1;
  others[2].attempt = 2;
  others[3].failures = 1;
  others[4].recoveries = 1;
  others[5].delay_us = 6;
  others[6].keep_us = 1;
  others[7].published_us = 0; /* keeps what the row says */
  others[8].record = &record; /* a line of another attempt, and of another kind */
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    struct decision *list[] = {&base, &others[i]};
    group_sort(list, 2);
    assert_int_equal(group_first(list, 2), 1);
    assert_int_equal(group_first(list + 1, 1), 1);
  }
}

static void texts_of_its_own_keep_a_decision_out(void **state) {
  struct result_record records[] = {{.progress = 0.5},
                                    {.progress = -1, .checkpoint = "c"},
                                    {.progress = -1, .result_json = "1"},
                                    {.progress = -1, .error_stack = "s"}};
  struct decision with[7];
  for (size_t i = 0; i < 7; i++) {
    with[i] = published(1, MS);
    with[i].record = i < 4 ? &records[i] : NULL;
  }
  with[4].error_class = "class";
  with[5].error = "error";
  with[6].alert_route = "route";
  for (size_t i = 0; i < 7; i++) {
    struct decision plain = published(2, 9 * MS);
    struct decision *list[] = {&with[i], &plain};
    group_sort(list, 2);
    assert_ptr_equal(list[0], &plain);
    assert_int_equal(group_first(list, 2), 1);
    assert_int_equal(group_first(list + 1, 1), 0);
  }
  assert_int_equal(group_first(NULL, 0), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_same_within_a_millisecond_is_one_group),
      cmocka_unit_test(another_value_is_another_group),
      cmocka_unit_test(texts_of_its_own_keep_a_decision_out),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
