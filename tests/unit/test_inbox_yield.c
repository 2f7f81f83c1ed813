/* SPDX-License-Identifier: MIT
 *
 * Results that cannot be written are given back to where they came from: another daemon may be able to.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/clock.h"
#include "inbox_fixture.h"

#define SECOND INT64_C(1000000)

static void until_tried(struct fixture *f, unsigned calls) {
  for (int64_t end = clock_mono_us() + LIMIT_MS * 1000; f->calls < calls; nap())
    assert_true(clock_mono_us() < end);
}

static size_t acks(struct driver *driver) {
  mutex_lock(&driver->ack_lock);
  size_t count = driver->ack_count;
  mutex_unlock(&driver->ack_lock);
  return count;
}

/* Whoever reads them now writes them, and what comes behind them: written here as well, later, an old checkpoint would
 * take the place of a newer one. What came otherwise, or since, stays. */
static void what_was_given_back_is_not_written(void **state) {
  struct fixture *f = *state;
  int64_t began_us = clock_mono_us();
  f->away = true;
  assert_true(say_of(f, &f->source, "tried", 0, DONE));
  until_tried(f, 1);
  assert_true(say_of(f, &f->source, "waiting", 0, DONE));
  assert_true(say_of(f, &f->partner, "stays", 0, DONE));
  assert_false(inbox_is_stuck(f->inbox, began_us + 15 * SECOND));
  assert_true(inbox_is_stuck(f->inbox, clock_mono_us() + 16 * SECOND));
  atomic_fetch_add(&f->source.yields, 1);
  until_tried(f, f->calls + 1);
  assert_true(inbox_is_stuck(f->inbox, clock_mono_us() + 16 * SECOND)); /* the source does not come back yet */
  assert_true(say_of(f, &f->source, "since", 0, DONE));
  f->away = false;
  open_until(f, 2);
  for (int64_t end = clock_mono_us() + LIMIT_MS * 1000; acks(&f->source) < 3 || acks(&f->partner) < 1; nap())
    assert_true(clock_mono_us() < end);
  assert_int_equal(f->said_count, 2);
  assert_string_equal(f->said[0].task, "stays-0");
  assert_string_equal(f->said[1].task, "since-0");
  assert_false(inbox_is_stuck(f->inbox, clock_mono_us() + 3600 * SECOND));
}

/* A server that is there and takes nothing, a standby say: the same records come again and again, and a broker may drop
 * what it has delivered 20 times. */
static void each_time_they_are_kept_twice_as_long(void **state) {
  struct fixture *f = *state;
  f->unwritable = true;
  for (int64_t times = 0, began_us = clock_mono_us(); times < 4; times++, began_us = clock_mono_us()) {
    unsigned calls = f->calls;
    assert_true(say_of(f, &f->source, "again", 0, DONE));
    until_tried(f, calls + 1);
    assert_false(inbox_is_stuck(f->inbox, began_us + (15 * SECOND << times)));
    assert_true(inbox_is_stuck(f->inbox, clock_mono_us() + (16 * SECOND << times)));
    atomic_fetch_add(&f->source.yields, 1);
    for (int64_t end = clock_mono_us() + LIMIT_MS * 1000; acks(&f->source) <= (size_t)times; nap())
      assert_true(clock_mono_us() < end);
  }
  f->unwritable = false;
  assert_true(say_of(f, &f->source, "again", 0, DONE));
  open_until(f, 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(what_was_given_back_is_not_written, set_up, tear_down),
      cmocka_unit_test_setup_teardown(each_time_they_are_kept_twice_as_long, set_up, tear_down),
  };
  return cmocka_run_group_tests_name("inbox_yield", tests, NULL, NULL);
}
