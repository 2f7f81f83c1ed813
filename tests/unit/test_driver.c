/* SPDX-License-Identifier: MIT
 *
 * When a driver counts as stuck: an idle one, which gives a sign of life once a second, never does.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "core/base/clock.h"
#include "core/driver.h"

enum { SECOND_US = 1000 * 1000 };

static bool stuck_when_silent_for(int64_t silent_us, int64_t limit_us) {
  struct driver driver = {0};
  atomic_store(&driver.alive_us, clock_mono_us() - silent_us);
  return driver_stuck(&driver, limit_us);
}

static void an_idle_one_is_not_stuck(void **state) {
  assert_false(stuck_when_silent_for(0, SECOND_US));
  assert_false(stuck_when_silent_for(SECOND_US + SECOND_US / 10, SECOND_US)); /* one idle poll, and a busy machine */
}

static void a_silent_one_is_stuck(void **state) {
  assert_true(stuck_when_silent_for(3 * SECOND_US, SECOND_US));
  assert_true(stuck_when_silent_for(62 * SECOND_US, 60 * (int64_t)SECOND_US));
}

static void one_whose_thread_ended_is_stuck_unless_it_was_told_to_end(void **state) {
  struct driver driver = {0};
  atomic_store(&driver.alive_us, clock_mono_us());
  atomic_store(&driver.ended, true);
  assert_true(driver_stuck(&driver, SECOND_US));
  atomic_store(&driver.stop_ms, 1);
  assert_false(driver_stuck(&driver, SECOND_US));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(an_idle_one_is_not_stuck),
      cmocka_unit_test(a_silent_one_is_stuck),
      cmocka_unit_test(one_whose_thread_ended_is_stuck_unless_it_was_told_to_end),
  };
  return cmocka_run_group_tests_name("driver", tests, NULL, NULL);
}
