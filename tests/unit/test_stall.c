/* SPDX-License-Identifier: MIT
 *
 * A sink that stands still gets no more than it has: what is not handed over stays in the table, where an UPDATE or
 * DELETE by plain SQL still counts. (It used to get all it had room for, and cancelled tasks were delivered seconds
 * later.) Times are made up here: nothing waits.
 */
#include "core/stall.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MS(n) ((int64_t)(n)*1000)

/* A sink at a distance: it confirms all that it is given after `away_us`, in order, or nothing while it is frozen. */
enum { WINDOW = 100000 };
struct sink {
  struct stall stall;
  int64_t away_us, now_us;
  bool frozen;
  struct {
    int64_t at_us;
    uint32_t slot;
  } task[WINDOW];
  size_t given, confirmed;
};

static int set_up(void **state) {
  struct sink *sink = calloc(1, sizeof *sink);
  sink->now_us = MS(1000000);
  *state = sink;
  return sink ? 0 : -1;
}

static int tear_down(void **state) {
  free(*state);
  return 0;
}

static void hand_over(struct sink *sink) {
  size_t n = sink->given++ % WINDOW;
  sink->task[n].at_us = sink->now_us;
  sink->task[n].slot = stall_handed_over(&sink->stall, sink->now_us);
}

static bool give(struct sink *sink) {
  if (stall_is_now(&sink->stall, sink->now_us))
    return false;
  hand_over(sink);
  return true;
}

static void confirm_next(struct sink *sink) {
  size_t n = sink->confirmed++ % WINDOW;
  stall_confirmed(&sink->stall, sink->task[n].slot);
  stall_learn(&sink->stall, sink->task[n].at_us, sink->now_us, sink->now_us);
}

/* Time passes: confirms come, and the sink is given as much as it may have, up to `window`, `per_ms` at most. Returns
 * how many were confirmed. */
static size_t run(struct sink *sink, int64_t ms, size_t window, size_t per_ms) {
  size_t before = sink->confirmed;
  for (int64_t end_us = sink->now_us + MS(ms); sink->now_us < end_us; sink->now_us += 1000) {
    while (!sink->frozen && sink->confirmed < sink->given &&
           sink->task[sink->confirmed % WINDOW].at_us + sink->away_us <= sink->now_us)
      confirm_next(sink);
    for (size_t i = 0; i < per_ms && sink->given - sink->confirmed < window && give(sink); i++)
      ;
  }
  return sink->confirmed - before;
}

static void one_that_was_given_nothing_is_not_stalled(void **state) {
  struct sink *sink = *state;
  assert_int_equal(stall_at_us(&sink->stall), INT64_MAX);
  assert_true(give(sink));
  assert_int_equal(stall_at_us(&sink->stall), sink->now_us + STALL_FIRST_US);
  confirm_next(sink);
  assert_int_equal(stall_at_us(&sink->stall), INT64_MAX);
}

static void one_that_stands_still_gets_no_more(void **state) {
  struct sink *sink = *state;
  sink->away_us = MS(2);
  run(sink, 1000, 4096, 10);
  sink->frozen = true;
  size_t given = sink->given;
  run(sink, 60, 4096, 10);
  assert_in_range(sink->given - given, 1, 52 * 10);
  given = sink->given;
  run(sink, 5000, 4096, 10);
  assert_int_equal(sink->given, given);
  sink->frozen = false;
  assert_true(run(sink, 1000, 4096, 10) > 9000);
}

/* Its tasks took 5 s, but that says nothing about how long confirming takes. */
static void a_standstill_teaches_nothing(void **state) {
  struct sink *sink = *state;
  sink->away_us = MS(2);
  run(sink, 1000, 4096, 10);
  for (int i = 0; i < 3; i++) {
    sink->frozen = true;
    run(sink, 5000, 4096, 10);
    sink->frozen = false;
    run(sink, 1000, 4096, 10);
    assert_int_equal(stall_limit_us(&sink->stall), MS(50));
  }
}

/* So much as a bare loop with the same window does, whatever the distance. */
static void distance_costs_nothing(void **state) {
  struct sink *sink = *state;
  const int64_t away[] = {5, 50, 200, 900, 2};
  for (size_t i = 0; i < sizeof away / sizeof *away; i++) {
    sink->away_us = MS(away[i]);
    run(sink, 10000, 20000, 20); /* it gets to know it */
    size_t rate = run(sink, 10000, 20000, 20);
    size_t bare = away[i] > 0 && 20000 / away[i] < 20 ? (size_t)(20000 / away[i]) : 20;
    assert_true(rate >= bare * 10000 * 95 / 100);
  }
}

/* The first tasks of all already show how far away it is, and it is not taken for stalled before. */
static void distance_is_known_soon(void **state) {
  struct sink *sink = *state;
  sink->away_us = MS(200);
  assert_true(run(sink, 1000, 20000, 20) >= 16000 * 95 / 100); /* the bare loop has its first one after 200 ms */
  assert_true(run(sink, 1000, 20000, 20) >= 19000);
}

static void a_slow_one_is_waited_for(void **state) {
  struct sink *sink = *state;
  sink->away_us = MS(5000);
  run(sink, 60000, 4096, 10);
  assert_in_range(stall_limit_us(&sink->stall), 1, STALL_MAX_US);
}

/* One task in the time in which it should have been confirmed shows whether it goes again; for as long as it takes. */
static void one_that_stands_still_is_probed(void **state) {
  struct sink *sink = *state;
  sink->away_us = MS(2);
  run(sink, 1000, 4096, 10);
  sink->frozen = true;
  run(sink, 100, 4096, 10);
  size_t given = sink->given;
  for (int64_t end_us = sink->now_us + MS(60000); sink->now_us < end_us; sink->now_us += 1000) {
    assert_true(stall_is_now(&sink->stall, sink->now_us));
    if (stall_probe_at_us(&sink->stall) > sink->now_us)
      continue;
    stall_probed(&sink->stall, sink->now_us);
    hand_over(sink);
  }
  assert_in_range(sink->given - given, 60000 / 50 - 1, 60000 / 50 + 1);
  sink->frozen = false;
  assert_true(run(sink, 1000, 4096, 10) > 9000);
}

/* Half of the tasks are for a target that never confirms, and few come: those for the other one go all the same. (The
 * first for the dead one used to stop them all until it was given up.) */
static void a_dead_target_does_not_stop_the_others(void **state) {
  struct sink *sink = *state;
  struct stall *stall = &sink->stall;
  uint32_t alive = 0;
  for (int i = 0; i < 10000; i++) {
    int64_t due_us = sink->now_us += MS(100);
    if (stall_is_now(stall, due_us) && stall_probe_at_us(stall) > due_us)
      sink->now_us = stall_probe_at_us(stall);
    assert_true(sink->now_us - due_us <= stall_limit_us(stall));
    if (stall_is_now(stall, sink->now_us))
      stall_probed(stall, sink->now_us);
    uint32_t slot = stall_handed_over(stall, sink->now_us);
    if (i % 2) {
      stall_confirmed(stall, slot);
      alive++;
    }
  }
  assert_int_equal(alive, 5000);
}

/* One task in a thousand for another key, queue or topic is slow: it holds up nobody. */
static void one_that_is_overtaken_is_not_waited_for(void **state) {
  struct sink *sink = *state;
  uint32_t stuck[1000], next;
  for (int i = 0; i < 1000; i++) {
    stuck[i] = stall_handed_over(&sink->stall, sink->now_us);
    for (int j = 0; j < 100; j++) {
      sink->now_us += 1000;
      assert_false(stall_is_now(&sink->stall, sink->now_us));
      next = stall_handed_over(&sink->stall, sink->now_us);
      sink->now_us += 1000;
      stall_confirmed(&sink->stall, next);
    }
  }
  next = stall_handed_over(&sink->stall, sink->now_us);
  for (int i = 0; i < 1000; i++) /* they come late, and count for nobody else */
    stall_confirmed(&sink->stall, stuck[i]);
  assert_false(stall_is_now(&sink->stall, sink->now_us));
  assert_true(stall_is_now(&sink->stall, sink->now_us + STALL_FIRST_US));
  stall_confirmed(&sink->stall, next);
  assert_int_equal(stall_at_us(&sink->stall), INT64_MAX);
}

/* A sink that stands still and refuses what it is offered has shown nothing; nor has a task that was given up. */
static void what_is_refused_shows_nothing(void **state) {
  struct sink *sink = *state;
  (void)stall_handed_over(&sink->stall, sink->now_us);
  for (int i = 0; i < 1000; i++) {
    sink->now_us += 1000;
    stall_withdrawn(&sink->stall, stall_handed_over(&sink->stall, sink->now_us));
  }
  assert_true(stall_is_now(&sink->stall, sink->now_us));
  uint32_t given_up = stall_handed_over(&sink->stall, sink->now_us);
  stall_withdrawn(&sink->stall, given_up);
  assert_true(stall_is_now(&sink->stall, sink->now_us));
}

/* Its queue is full although it has nothing: that ends when it takes a task, or when nobody has tried for long. (Only
 * tasks that it had taken used to count, and a route whose plugin took none stood still and seemed to be well.) */
static void one_that_takes_nothing_is_stalled(void **state) {
  struct sink *sink = *state;
  for (int64_t waited = 0; waited < STALL_REFUSED_US; waited += MS(10)) {
    assert_false(stall_is_now(&sink->stall, sink->now_us));
    stall_refused(&sink->stall, sink->now_us);
    sink->now_us += MS(10);
  }
  assert_true(stall_is_now(&sink->stall, sink->now_us));
  assert_true(stall_probe_at_us(&sink->stall) <= sink->now_us);
  assert_false(stall_is_now(&sink->stall, sink->now_us + MS(20000)));
  stall_taken(&sink->stall);
  assert_false(stall_is_now(&sink->stall, sink->now_us));
}

static void a_refusal_of_long_ago_says_nothing(void **state) {
  struct sink *sink = *state;
  stall_refused(&sink->stall, sink->now_us);
  sink->now_us += MS(60000);
  stall_refused(&sink->stall, sink->now_us);
  assert_false(stall_is_now(&sink->stall, sink->now_us));
}

/* The log says that it goes again, and is not to say so of one that has confirmed nothing: what it had may have timed
 * out, or been lost with its connection. */
static void a_stall_is_over_with_a_confirm_only(void **state) {
  struct sink *sink = *state;
  struct stall *stall = &sink->stall;
  const int64_t began_us = sink->now_us, ended_us = began_us + MS(3000), later_us = ended_us + STALL_OVER_US;
  stall_heard(stall, began_us - 1);
  assert_false(stall_is_over(stall, 0, later_us)); /* none was said */
  stall_say(stall, began_us);
  assert_false(stall_is_over(stall, ended_us, later_us));
  assert_false(stall_is_over(stall, ended_us, later_us + MS(3600000)));
  stall_heard(stall, ended_us);
  stall_heard(stall, began_us - 2); /* news of others come late */
  assert_false(stall_is_over(stall, ended_us, later_us - 1));
  assert_true(stall_is_over(stall, ended_us, later_us));
  stall_say(stall, 0);
  assert_false(stall_is_over(stall, ended_us, later_us));
}

static void an_outcome_confirms_if_the_destination_has_answered(void **state) {
  assert_true(stall_confirms(DUEBOX_DELIVERED));
  assert_true(stall_confirms(DUEBOX_RETRY));
  assert_true(stall_confirms(DUEBOX_GONE));
  assert_false(stall_confirms(DUEBOX_REJECTED)); /* perhaps by the plugin itself */
  assert_false(stall_confirms(DUEBOX_UNAVAILABLE));
  assert_false(stall_confirms(DUEBOX_UNKNOWN)); /* a time-out */
}

#define ROW(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      ROW(one_that_was_given_nothing_is_not_stalled),
      ROW(one_that_stands_still_gets_no_more),
      ROW(a_standstill_teaches_nothing),
      ROW(distance_costs_nothing),
      ROW(distance_is_known_soon),
      ROW(a_slow_one_is_waited_for),
      ROW(one_that_stands_still_is_probed),
      ROW(a_dead_target_does_not_stop_the_others),
      ROW(one_that_is_overtaken_is_not_waited_for),
      ROW(what_is_refused_shows_nothing),
      ROW(one_that_takes_nothing_is_stalled),
      ROW(a_refusal_of_long_ago_says_nothing),
      ROW(a_stall_is_over_with_a_confirm_only),
      cmocka_unit_test(an_outcome_confirms_if_the_destination_has_answered),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
