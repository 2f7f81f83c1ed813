/* SPDX-License-Identifier: MIT
 *
 * What the server refuses of one route's outcomes is found out apart from the others, and where it refuses the same of
 * all of them, that is left out at once, and tried again now and then.
 */
#include "core/refusals.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { DAY_US = 86400 * 1000 };

static struct outcome_refusals all_refused(enum task_event event, enum decision_form form, int64_t now) {
  struct outcome_refusals refusals = {0};
  for (unsigned i = 0; i < REFUSALS_ALIKE; i++)
    assert_true(refusals_note(&refusals, event, DECISION_WHOLE, form, now) ==
                (i + 1 == REFUSALS_ALIKE && form != DECISION_FORMS));
  return refusals;
}

static void one_refusal_keeps_the_lane_apart_for_a_while(void **state) {
  struct outcome_refusals refusals = {0};
  assert_int_equal(refusals_way(&refusals, EVENT_DONE, DAY_US), REFUSALS_TOGETHER);
  assert_false(refusals_note(&refusals, EVENT_DONE, DECISION_WHOLE, DECISION_WHOLE, DAY_US));
  assert_int_equal(refusals_way(&refusals, EVENT_DONE, DAY_US), REFUSALS_TOGETHER);
  assert_false(refusals_note(&refusals, EVENT_DONE, DECISION_WHOLE, DECISION_NO_HISTORY, DAY_US));
  assert_int_equal(refusals_way(&refusals, EVENT_RETRY, DAY_US + REFUSALS_APART_US - 1), REFUSALS_APART);
  assert_int_equal(refusals_way(&refusals, EVENT_RETRY, DAY_US + REFUSALS_APART_US), REFUSALS_TOGETHER);
  assert_int_equal(refusals_least(&refusals, EVENT_DONE), DECISION_WHOLE);
}

static void what_is_refused_of_all_is_left_out_of_the_next_at_once(void **state) {
  struct outcome_refusals refusals = all_refused(EVENT_DONE, DECISION_NO_HISTORY, DAY_US);
  assert_int_equal(refusals_least(&refusals, EVENT_DONE), DECISION_NO_HISTORY);
  assert_int_equal(refusals_way(&refusals, EVENT_DONE, DAY_US), REFUSALS_TOGETHER);
  assert_int_equal(refusals_least(&refusals, EVENT_RETRY), DECISION_WHOLE);
  assert_int_equal(refusals_way(&refusals, EVENT_RETRY, DAY_US), REFUSALS_APART);
}

/* One a second, and the first one that is taken ends it. */
static void one_is_tried_whole_now_and_then(void **state) {
  struct outcome_refusals refusals = all_refused(EVENT_DONE, DECISION_NO_HISTORY, DAY_US);
  int64_t now = DAY_US + REFUSALS_WHOLE_US;
  assert_int_equal(refusals_way(&refusals, EVENT_DONE, now - 1), REFUSALS_TOGETHER);
  assert_int_equal(refusals_way(&refusals, EVENT_DONE, now), REFUSALS_PROBE);
  assert_int_equal(refusals_way(&refusals, EVENT_DONE, now), REFUSALS_TOGETHER);
  assert_false(refusals_note(&refusals, EVENT_DONE, DECISION_NO_HISTORY, DECISION_NO_HISTORY, now));
  assert_false(refusals_note(&refusals, EVENT_DONE, DECISION_WHOLE, DECISION_NO_HISTORY, now));
  assert_int_equal(refusals_least(&refusals, EVENT_DONE), DECISION_NO_HISTORY);
  assert_true(refusals_note(&refusals, EVENT_DONE, DECISION_WHOLE, DECISION_WHOLE, now));
  assert_int_equal(refusals_least(&refusals, EVENT_DONE), DECISION_WHOLE);
  assert_int_equal(refusals_way(&refusals, EVENT_DONE, now + REFUSALS_APART_US), REFUSALS_TOGETHER);
}

/* Where the server takes one in ten whole, none loses its history for those that do. */
static void what_is_taken_between_keeps_each_whole(void **state) {
  struct outcome_refusals refusals = {0};
  for (unsigned i = 0; i < 100 * REFUSALS_ALIKE; i++)
    assert_false(
        refusals_note(&refusals, EVENT_DONE, DECISION_WHOLE, i % 10 ? DECISION_NO_HISTORY : DECISION_WHOLE, DAY_US));
  assert_int_equal(refusals_least(&refusals, EVENT_DONE), DECISION_WHOLE);
}

/* Rows that fit come between those that are cut, and writing them in the same form costs them nothing: whoever mixes
 * the two had each of the others found out by itself, at some tens a second. */
static void what_is_cut_is_so_beside_others_that_fit(void **state) {
  struct outcome_refusals refusals = {0};
  unsigned began = 0;
  for (unsigned i = 0; i < 3 * REFUSALS_ALIKE; i++)
    began += refusals_note(&refusals, EVENT_DEAD, DECISION_WHOLE, i % 3 ? DECISION_WHOLE : DECISION_CUT, DAY_US);
  assert_int_equal(began, 1);
  for (unsigned i = 0; i < 2 * REFUSALS_ALIKE; i++) /* one probe in 64 does not fit */
    assert_false(refusals_note(&refusals, EVENT_DEAD, DECISION_WHOLE,
                               i % REFUSALS_ALIKE ? DECISION_WHOLE : DECISION_CUT, DAY_US));
  assert_int_equal(refusals_least(&refusals, EVENT_DEAD), DECISION_CUT);
  assert_true(refusals_note(&refusals, EVENT_DEAD, DECISION_WHOLE, DECISION_WHOLE, DAY_US));
  assert_int_equal(refusals_least(&refusals, EVENT_DEAD), DECISION_WHOLE);
}

/* What is refused in every form is tried each time. */
static void what_is_refused_in_every_form_is_tried_each_time(void **state) {
  struct outcome_refusals refusals = all_refused(EVENT_DEAD, DECISION_FORMS, DAY_US);
  assert_int_equal(refusals_least(&refusals, EVENT_DEAD), DECISION_WHOLE);
  assert_int_equal(refusals_way(&refusals, EVENT_DEAD, DAY_US), REFUSALS_APART);
}

/* The server refuses more than before: it is found out anew what. */
static void more_that_is_refused_is_found_out(void **state) {
  struct outcome_refusals refusals = all_refused(EVENT_RETRY, DECISION_NO_TEXTS, DAY_US);
  assert_false(refusals_note(&refusals, EVENT_RETRY, DECISION_NO_TEXTS, DECISION_NO_LINES, DAY_US));
  assert_int_equal(refusals_least(&refusals, EVENT_RETRY), DECISION_WHOLE);
  assert_int_equal(refusals_way(&refusals, EVENT_RETRY, DAY_US), REFUSALS_APART);
}

/* Finding out takes a while: the others have as much time as a turn took, and nine times as much while some wait. What
 * finds nothing out costs them nothing. */
static void turns_leave_most_of_the_time_to_the_others(void **state) {
  struct refusals_pace pace = {0};
  assert_true(refusals_turn(&pace, true, DAY_US));
  refusals_rest(&pace, true, DAY_US, DAY_US + 1000);
  assert_false(refusals_turn(&pace, false, DAY_US + 1999));
  assert_true(refusals_turn(&pace, false, DAY_US + 2000));
  assert_false(refusals_turn(&pace, true, DAY_US + 9999));
  assert_true(refusals_turn(&pace, true, DAY_US + 10000));
  refusals_rest(&pace, false, DAY_US, DAY_US + 1000);
  assert_true(refusals_turn(&pace, true, DAY_US + 1000));
  refusals_rest(&pace, true, 0, INT64_C(3600) * 1000 * 1000); /* the database was away */
  assert_true(refusals_turn(&pace, true, INT64_C(3620) * 1000 * 1000));
  assert_int_equal(refusals_rows(8, 5001, 5000, 500), 4);
  assert_int_equal(refusals_rows(1, 5001, 5000, 500), 1);
  assert_int_equal(refusals_rows(8, 5000, 5000, 500), 16);
  assert_int_equal(refusals_rows(400, 10, 5000, 500), 500);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_refusal_keeps_the_lane_apart_for_a_while),
      cmocka_unit_test(what_is_refused_of_all_is_left_out_of_the_next_at_once),
      cmocka_unit_test(one_is_tried_whole_now_and_then),
      cmocka_unit_test(what_is_taken_between_keeps_each_whole),
      cmocka_unit_test(what_is_cut_is_so_beside_others_that_fit),
      cmocka_unit_test(what_is_refused_in_every_form_is_tried_each_time),
      cmocka_unit_test(more_that_is_refused_is_found_out),
      cmocka_unit_test(turns_leave_most_of_the_time_to_the_others),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
