/* SPDX-License-Identifier: MIT
 *
 * Results of a route of which the server refuses some have turns of their own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/clock.h"
#include "inbox_fixture.h"

/* The server refuses results of one route, and finding out which takes a while: those of the others do not wait for
 * that, and each task's come in their order all the same (P7, P8). */
static void results_of_a_route_in_trouble_have_turns_of_their_own(void **state) {
  enum { POOR = 300, OTHERS = 50, STEPS = 3 };
  struct fixture *f = *state;
  unsigned poor_before = 0, step = 0;
  f->refuses = true;
  shut(f);
  for (unsigned i = 0; i < POOR; i++)
    assert_true(say_of(f, &f->source, "poor", i, i ? DONE : "\"status\":\"progress\",\"progress\":0.1"));
  assert_true(say_of(f, &f->source, "poor", 0, "\"status\":\"progress\",\"progress\":0.2"));
  assert_true(say_of(f, &f->source, "poor", 0, DONE));
  for (unsigned i = 0; i < OTHERS; i++)
    assert_true(say_of(f, &f->source, "other", i, DONE));
  open_until(f, 1 + POOR + 2 + OTHERS);
  assert_false(f->mixed);
  for (unsigned i = 0; i < last_of(f, "other"); i++)
    poor_before += strncmp(f->said[i].task, "poor", 4) == 0;
  assert_in_range(poor_before, 0, 3);
  for (unsigned i = 0; i < f->said_count; i++)
    if (strcmp(f->said[i].task, "poor-0") == 0)
      assert_int_equal(f->said[i].status == RESULT_DONE, ++step == STEPS);
  assert_int_equal(step, STEPS);
  assert_false(f->backwards);
}

/* However many there are, and for however long: in the quarantine they would not count. */
static void of_a_route_in_trouble_none_is_quarantined(void **state) {
  enum { POOR = ASIDE_PER_ROUTE + 500 };
  struct fixture *f = *state;
  f->refuses = true;
  for (unsigned i = 0; i < POOR; i++)
    for (int64_t end = clock_mono_us() + LIMIT_MS * 1000; !say_of(f, &f->partner, "poor", i, DONE); nap())
      assert_true(clock_mono_us() < end);
  for (int64_t end = clock_mono_us() + LIMIT_MS * 1000; f->applied < POOR; nap())
    assert_true(clock_mono_us() < end);
  assert_int_equal(f->broken, 0);
}

/* Somebody holds what results of one route need beside their rows, the next row id for an alert, say: each try to write
 * some finds out by halves which of them need it. Those of the others went between two such tries, one by one. */
static void results_that_meet_a_lock_take_a_small_part_of_the_time(void **state) {
  enum { LOCKED = 20, OTHERS = 40 };
  struct fixture *f = *state;
  f->beside = true;
  for (unsigned i = 0; i < LOCKED; i++)
    assert_true(say_of(f, &f->source, "beside", i, DONE));
  for (int64_t end = clock_mono_us() + LIMIT_MS * 1000; f->beside_tried < 2 * LOCKED; nap())
    assert_true(clock_mono_us() < end);
  for (unsigned i = 0; i < OTHERS; i++) {
    assert_true(say_of(f, &f->partner, "other", i, DONE));
    for (int64_t end = clock_mono_us() + LIMIT_MS * 1000; f->applied <= i; nap())
      assert_true(clock_mono_us() < end);
  }
  assert_in_range(f->beside_tried, 2 * LOCKED, LOCKED * OTHERS / 2);
  f->beside = false;
  for (int64_t end = clock_mono_us() + LIMIT_MS * 1000; f->applied < LOCKED + OTHERS; nap())
    assert_true(clock_mono_us() < end);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(results_of_a_route_in_trouble_have_turns_of_their_own, set_up, tear_down),
      cmocka_unit_test_setup_teardown(results_that_meet_a_lock_take_a_small_part_of_the_time, set_up, tear_down),
      cmocka_unit_test_setup_teardown(of_a_route_in_trouble_none_is_quarantined, set_up_impatient, tear_down),
  };
  return cmocka_run_group_tests_name("inbox_apart", tests, NULL, NULL);
}
