/* SPDX-License-Identifier: MIT
 *
 * The bounds of the database's clock, in time of the test's own: what they say is never too early (P3), whether it
 * runs, is slewed or jumps, and narrow where it simply runs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/db_clock.h"

enum { MS = 1000, SECOND = 1000 * MS, STEP = 50 };
#define BASE (INT64_C(1700000000) * SECOND) /* what the database's clock said when ours said 0 */

/* A database whose clock runs at another rate from some moment on. */
struct world {
  struct db_clock clock;
  int64_t now_us, slewed_at_us, set_us; /* set: by so much */
  int64_t ppm;
  unsigned random;
};

static int64_t db_at(const struct world *w, int64_t us) {
  int64_t slewed = us > w->slewed_at_us ? us - w->slewed_at_us : 0;
  return BASE + us + w->set_us + slewed * w->ppm / 1000000;
}

static int64_t some(struct world *w, int64_t least_us, int64_t most_us) {
  w->random = w->random * 1103515245 + 12345;
  return least_us + (w->random >> 8) % (most_us - least_us + 1);
}

/* It is asked, and the answer takes as long as on a machine with work to do. True: it has jumped. */
static bool ask(struct world *w) {
  int64_t before = w->now_us, stamped = before + some(w, 30, 300), after = stamped + some(w, 30, 1500);
  w->now_us = after;
  return db_clock_told(&w->clock, db_at(w, stamped), before, after);
}

/* What surely is the time there: early by how much at most, and late on the average, until the next answer. */
static int64_t worst_us, late_us, looks;
static void run(struct world *w, int64_t us, int64_t every_us) {
  worst_us = INT64_MIN;
  late_us = looks = 0;
  for (int64_t end = w->now_us + us; w->now_us < end;) {
    (void)ask(w);
    for (int64_t next = w->now_us + every_us; w->now_us < next; w->now_us += STEP, looks++) {
      int64_t early = db_clock_surely_us(&w->clock, w->now_us) - db_at(w, w->now_us);
      worst_us = early > worst_us ? early : worst_us;
      late_us -= early;
    }
  }
  late_us /= looks;
}

static const int64_t rates[] = {-83333, -80000, -5000, -500, 500, 5000, 83333};
static const int64_t pauses[] = {2 * MS, 10 * MS, 20 * MS, 200 * MS};

static void it_is_not_early_while_a_clock_is_slewed(void **state) {
  for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++)
    for (size_t j = 0; j < sizeof pauses / sizeof pauses[0]; j++) {
      struct world w = {.now_us = SECOND, .ppm = rates[i]};
      run(&w, 20 * SECOND, pauses[j]);
      if (worst_us > 0 && (rates[i] <= -5000 || rates[i] > 0))
        fail_msg("%d ppm, asked each %d us: early by %d us", (int)rates[i], (int)pauses[j], (int)worst_us);
      if (worst_us > 300) /* in the doubt that an answer leaves, before the next one contradicts it */
        fail_msg("%d ppm: early by %d us", (int)rates[i], (int)worst_us);
    }
}

/* Where it begins, some milliseconds pass until two answers contradict each other. */
static void the_beginning_of_a_slew_is_noticed_at_once(void **state) {
  for (size_t j = 0; j < sizeof pauses / sizeof pauses[0]; j++) {
    struct world w = {.now_us = SECOND, .ppm = -83333, .slewed_at_us = 10 * SECOND};
    run(&w, 9 * SECOND - 300 * MS, pauses[j]);
    assert_false(w.clock.slews);
    while (w.now_us < w.slewed_at_us + 30 * MS)
      run(&w, 1, pauses[j]);
    (void)ask(&w);
    assert_true(w.clock.slews);
    run(&w, 20 * SECOND, pauses[j]);
    assert_true(worst_us <= 0);
  }
}

/* Lateness is what the bounds cost: they are narrow again when it is over. */
static void a_clock_that_runs_is_known_well(void **state) {
  struct world w = {.now_us = SECOND};
  run(&w, 5 * SECOND, 10 * MS);
  assert_true(w.now_us > w.clock.calm_at_us && !w.clock.slews);
  run(&w, 20 * SECOND, 10 * MS);
  assert_true(worst_us <= 0);
  assert_in_range(late_us, 0, 200);
  w.slewed_at_us = w.now_us;
  w.ppm = -83333;
  run(&w, 5 * SECOND, 10 * MS);
  assert_true(w.clock.slews);
  assert_in_range(late_us, 200, 5 * MS);
  w.set_us = db_at(&w, w.now_us) - BASE - w.now_us;
  w.ppm = 0;
  run(&w, 5 * SECOND, 10 * MS);
  run(&w, 5 * SECOND, 10 * MS);
  assert_false(w.clock.slews);
  assert_true(worst_us <= 0);
  assert_in_range(late_us, 0, 200);
}

static void a_jump_is_told(void **state) {
  static const int64_t by[] = {-3600LL * SECOND, -SECOND, SECOND, 3600LL * SECOND};
  struct world w = {.now_us = SECOND};
  assert_false(ask(&w));
  for (size_t i = 0; i < sizeof by / sizeof by[0]; i++) {
    run(&w, 5 * SECOND, 100 * MS);
    w.set_us += by[i];
    assert_true(ask(&w));
    run(&w, 5 * SECOND, 100 * MS);
    assert_true(worst_us <= 0);
    assert_in_range(db_clock_offset_us(&w.clock) - (db_at(&w, w.now_us) - w.now_us) + MS, 0, 2 * MS);
  }
}

/* Whoever sleeps until then finds that it is so, and has not slept much longer. */
static void the_moment_is_known_in_advance(void **state) {
  for (int slews = 0; slews < 2; slews++) {
    struct world w = {.now_us = SECOND};
    run(&w, slews ? SECOND : 5 * SECOND, 10 * MS);
    assert_int_equal(w.clock.slews, slews);
    for (int64_t ahead = -SECOND; ahead <= 100 * MS; ahead += 777) {
      int64_t due = w.clock.seen_us + db_clock_offset_us(&w.clock) + ahead;
      int64_t then = db_clock_reaches_us(&w.clock, due);
      assert_true(db_clock_surely_us(&w.clock, then) >= due);
      assert_true(then <= w.clock.seen_us || db_clock_surely_us(&w.clock, then - 3) < due);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(it_is_not_early_while_a_clock_is_slewed),
      cmocka_unit_test(the_beginning_of_a_slew_is_noticed_at_once),
      cmocka_unit_test(a_clock_that_runs_is_known_well),
      cmocka_unit_test(a_jump_is_told),
      cmocka_unit_test(the_moment_is_known_in_advance),
  };
  return cmocka_run_group_tests_name("db_clock", tests, NULL, NULL);
}
