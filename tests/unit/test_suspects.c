/* SPDX-License-Identifier: MIT
 *
 * How tasks leave again that were in flight in a crash. What kills the process costs itself, after its three crashes,
 * and nobody else; and those that had no part in it are gone soon, however many they are: one crash of a fast route
 * used to cost thousands of tasks minutes, one after the other.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/suspects.h"

enum { TASKS = 2000, MAX_RECOVERIES = 3 };

enum state { WAITS, OUT, DONE, DEAD };

struct world {
  enum state state[TASKS];
  uint32_t recoveries[TASKS];
  bool poison[TASKS];
  int lanes; /* a task's is its number modulo this */
  struct suspects suspects[2];
  bool last_chance;
  unsigned crashes, rounds; /* rounds: how often calls of the same length came back, in all processes */
};

static void crash(struct world *w) {
  for (int i = 0; i < TASKS; i++)
    if (w->state[i] == OUT)
      w->state[i] = ++w->recoveries[i] >= MAX_RECOVERIES ? DEAD : WAITS;
  memset(w->suspects, 0, sizeof w->suspects);
  w->last_chance = false;
  w->crashes++;
}

/* All that may leave do, in the order of their due times. */
static bool send(struct world *w) {
  bool some = false;
  for (int i = 0; i < TASKS; i++) {
    enum suspicion suspicion = suspicion_of(w->recoveries[i], MAX_RECOVERIES);
    struct suspects *suspects = &w->suspects[i % w->lanes];
    if (w->state[i] != WAITS || !suspects_may_go(suspects, suspicion, w->last_chance))
      continue;
    suspects_went(suspects, suspicion, &w->last_chance);
    w->state[i] = OUT;
    some = true;
  }
  return some;
}

static bool poison_is_out(const struct world *w) {
  for (int i = 0; i < TASKS; i++)
    if (w->state[i] == OUT && w->poison[i])
      return true;
  return false;
}

static void come_back(struct world *w) {
  for (int i = 0; i < TASKS; i++)
    if (w->state[i] == OUT) {
      enum suspicion suspicion = suspicion_of(w->recoveries[i], MAX_RECOVERIES);
      suspects_back(&w->suspects[i % w->lanes], suspicion, true, &w->last_chance);
      w->state[i] = DONE;
    }
}

static void run(struct world *w) {
  while (send(w)) {
    w->rounds++;
    if (poison_is_out(w))
      crash(w);
    else
      come_back(w);
  }
  for (int i = 0; i < TASKS; i++) {
    assert_int_equal(w->state[i], w->poison[i] ? DEAD : DONE);
    assert_int_equal(w->suspects[i % w->lanes].out, 0);
  }
  assert_false(w->last_chance);
}

static void one_crash_that_no_task_caused_is_soon_over(void **state) {
  struct world w = {.lanes = 1};
  assert_true(send(&w));
  crash(&w);
  run(&w);
  assert_in_range(w.rounds, 1, 7 + TASKS / SUSPECTS_MAX); /* 1, 2, 4 .. 64, and 64 each from then on */
}

static void poison_costs_itself_wherever_it_is(void **state) {
  for (int at = 0; at < TASKS; at += 37) {
    struct world w = {.lanes = 1};
    w.poison[at] = true;
    run(&w);
    assert_int_equal(w.crashes, MAX_RECOVERIES);
    assert_in_range(w.rounds, 3, 3 * 7 + TASKS / SUSPECTS_MAX + SUSPECTS_MAX);
  }
}

/* Poison of one route among the suspects of another: these are nobody's last chance at the same moment. */
static void tasks_of_other_routes_do_not_die_of_it(void **state) {
  for (int at = 0; at < TASKS; at += 61) {
    struct world w = {.lanes = 2};
    w.poison[at] = true;
    run(&w);
    assert_int_equal(w.crashes, MAX_RECOVERIES);
  }
}

static void a_last_chance_is_had_alone(void **state) {
  struct suspects one = {0}, other = {0};
  bool last = false;
  assert_int_equal(suspicion_of(0, 1), SUSPICION_NONE);
  assert_int_equal(suspicion_of(1, 2), SUSPICION_LAST);
  assert_int_equal(suspicion_of(1, 3), SUSPICION_SHARED);
  assert_int_equal(suspicion_of(999, 1000), SUSPICION_LAST);
  assert_int_equal(suspicion_of(7, 3), SUSPICION_LAST); /* max_recoveries is lower than it was */
  suspects_went(&one, SUSPICION_SHARED, &last);
  assert_false(suspects_may_go(&one, SUSPICION_LAST, last));
  assert_true(suspects_may_go(&other, SUSPICION_LAST, last));
  suspects_went(&other, SUSPICION_LAST, &last);
  suspects_back(&one, SUSPICION_SHARED, true, &last);
  assert_false(suspects_may_go(&one, SUSPICION_LAST, last));
  assert_false(suspects_may_go(&other, SUSPICION_SHARED, last));
  assert_true(suspects_may_go(&one, SUSPICION_SHARED, last));
  assert_true(suspects_may_go(&other, SUSPICION_NONE, last));
  suspects_back(&other, SUSPICION_LAST, false, &last); /* it never left after all: nothing is proved */
  assert_int_equal(other.survived, 0);
  assert_true(suspects_may_go(&one, SUSPICION_LAST, last));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_crash_that_no_task_caused_is_soon_over),
      cmocka_unit_test(poison_costs_itself_wherever_it_is),
      cmocka_unit_test(tasks_of_other_routes_do_not_die_of_it),
      cmocka_unit_test(a_last_chance_is_had_alone),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
