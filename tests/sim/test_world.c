/* SPDX-License-Identifier: MIT
 *
 * tests/sim/test_world.c - the simulated operating system by itself: what it switches, how time passes, that a seed is
 * a run, and that it notices what it is there to notice.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/clock.h"
#include "core/base/sync.h"
#include "memory.h"
#include "world.h"

static struct world_options options(uint64_t seed, enum strategy strategy) {
  return (struct world_options){
      .seed = seed, .strategy = strategy, .preempt_ppm = 100000, .changes = 3, .steps_guess = 500, .steps_max = 100000};
}

struct counter {
  struct mutex mutex;
  struct thread threads[3];
  int value, rounds;
  bool locks;
};

static void count_up(void *arg) {
  struct counter *counter = arg;
  for (int i = 0; i < counter->rounds; i++) {
    if (counter->locks)
      mutex_lock(&counter->mutex);
    int seen = counter->value;
    world_point(POINT_USER, 0);
    counter->value = seen + 1;
    if (counter->locks)
      mutex_unlock(&counter->mutex);
  }
}

static void count_with_threads(void *arg) {
  struct counter *counter = arg;
  mutex_init(&counter->mutex);
  for (int i = 0; i < 3; i++)
    assert_true(thread_start(&counter->threads[i], "counter", count_up, counter));
  for (int i = 0; i < 3; i++)
    thread_join(&counter->threads[i]);
  mutex_destroy(&counter->mutex);
  world_stop();
}

static struct world_count run(const struct world_options *with, void (*main_strand)(void *), void *arg,
                              const char **why) {
  static const char *ignored;
  world_begin(with);
  world_spawn(NULL, "main", main_strand, arg);
  (void)!world_run(why ? why : &ignored);
  struct world_count count = world_counts();
  world_end();
  return count;
}

static void what_is_locked_is_not_interrupted(void **state) {
  for (uint64_t seed = 0; seed < 200; seed++) {
    struct counter counter = {.rounds = 5, .locks = true};
    struct world_options with = options(seed, (enum strategy)(seed % STRATEGIES));
    run(&with, count_with_threads, &counter, NULL);
    assert_int_equal(counter.value, 15);
  }
}

static void what_is_not_locked_is_interrupted_under_each_strategy(void **state) {
  for (int strategy = 0; strategy < STRATEGIES; strategy++) {
    int lost = 0;
    for (uint64_t seed = 0; seed < 100; seed++) {
      struct counter counter = {.rounds = 5};
      struct world_options with = options(seed, (enum strategy)strategy);
      with.steps_guess = 20;
      run(&with, count_with_threads, &counter, NULL);
      lost += counter.value != 15;
    }
    assert_true(lost > 5);
  }
}

static void a_seed_is_a_run(void **state) {
  struct world_count first[STRATEGIES];
  for (int again = 0; again < 2; again++)
    for (int strategy = 0; strategy < STRATEGIES; strategy++) {
      struct counter counter = {.rounds = 20, .locks = true};
      struct world_options with = options(7, (enum strategy)strategy);
      void *moves_addresses = malloc(again ? 1001 : 1);
      struct world_count count = run(&with, count_with_threads, &counter, NULL);
      free(moves_addresses);
      if (again)
        assert_true(count.hash == first[strategy].hash && count.steps == first[strategy].steps);
      first[strategy] = count;
    }
}

/* --- time --- */

static void sleep_for_an_hour(void *arg) {
  int64_t before = clock_mono_us();
  thread_sleep(INT64_C(3600) * 1000 * 1000);
  *(int64_t *)arg = clock_mono_us() - before;
  world_stop();
}

static void time_jumps_when_nobody_can_run(void **state) {
  int64_t slept = 0;
  struct world_options with = options(1, STRATEGY_RANDOM);
  struct world_count count = run(&with, sleep_for_an_hour, &slept, NULL);
  assert_true(slept >= INT64_C(3600) * 1000 * 1000 && slept < INT64_C(3601) * 1000 * 1000);
  assert_true(count.steps < 10);
}

struct meeting {
  struct mutex mutex;
  struct cond cond;
  struct thread thread;
  bool there, in_time;
};

static void come(void *arg) {
  struct meeting *meeting = arg;
  thread_sleep(1000);
  mutex_lock(&meeting->mutex);
  meeting->there = true;
  cond_signal(&meeting->cond);
  mutex_unlock(&meeting->mutex);
}

static void meet(void *arg) {
  struct meeting *meeting = arg;
  mutex_init(&meeting->mutex);
  cond_init(&meeting->cond);
  assert_true(thread_start(&meeting->thread, "other", come, meeting));
  int64_t deadline = clock_mono_us() + 1000 * 1000;
  mutex_lock(&meeting->mutex);
  while (!meeting->there && cond_wait_until(&meeting->cond, &meeting->mutex, deadline))
    ;
  meeting->in_time = meeting->there && clock_mono_us() < deadline;
  mutex_unlock(&meeting->mutex);
  thread_join(&meeting->thread);
  world_stop();
}

static void a_signal_ends_a_wait(void **state) {
  for (uint64_t seed = 0; seed < 100; seed++) {
    struct meeting meeting = {0};
    struct world_options with = options(seed, (enum strategy)(seed % STRATEGIES));
    with.spurious_ppm = seed % 2 ? 500000 : 0;
    run(&with, meet, &meeting, NULL);
    assert_true(meeting.in_time);
  }
}

/* --- what goes wrong --- */

static struct mutex both[2];

static void second_first(void *arg) {
  mutex_lock(&both[1]);
  mutex_lock(&both[0]);
  mutex_unlock(&both[0]);
  mutex_unlock(&both[1]);
}
static void first_second(void *arg) {
  static struct thread thread;
  mutex_init(&both[0]);
  mutex_init(&both[1]);
  assert_true(thread_start(&thread, "second", second_first, NULL));
  mutex_lock(&both[0]);
  mutex_lock(&both[1]);
  world_stop();
}

static void a_deadlock_is_found_and_named(void **state) {
  int found = 0;
  for (uint64_t seed = 0; seed < 50; seed++) {
    const char *why = "";
    struct world_options with = options(seed, STRATEGY_RANDOM);
    run(&with, first_second, NULL, &why);
    if (why[0]) {
      assert_string_equal(why, "deadlock: nobody can go on: 0/main(lock) 0/second(lock)");
      found++;
    }
  }
  assert_true(found > 5);
}

static void turn_in_circles(void *arg) {
  for (;;)
    world_point(POINT_USER, 0);
}

static void a_busy_loop_is_found(void **state) {
  const char *why = "";
  struct world_options with = options(0, STRATEGY_RANDOM);
  run(&with, turn_in_circles, NULL, &why);
  assert_non_null(strstr(why, "turns in circles"));
}

/* --- machines --- */

static void allocate_for_ever(void *arg) {
  for (int i = 0;; i++) {
    void *at = malloc(100);
    thread_sleep(1000);
    if (i % 2)
      free(at);
  }
}

static void kill_it(void *arg) {
  struct machine *machine = arg;
  thread_sleep(100 * 1000);
  assert_true(memory_count(machine->number) > 10);
  world_kill(machine);
  thread_sleep(100 * 1000);
  assert_int_equal(memory_count(machine->number), 0);
  world_stop();
}

static void a_killed_machine_leaves_nothing(void **state) {
  struct machine machine = {.number = 1};
  struct world_options with = options(3, STRATEGY_RANDOM);
  world_begin(&with);
  world_spawn(&machine, "leak", allocate_for_ever, NULL);
  world_spawn(NULL, "killer", kill_it, &machine);
  const char *why;
  assert_true(world_run(&why));
  world_end();
}

static void note_the_time(void *arg) {
  thread_sleep(1000);
  *(int64_t *)arg = world_now_us();
}
static void stop_later(void *arg) {
  thread_sleep(10 * 1000 * 1000);
  world_stop();
}

static void a_stopped_machine_does_not_run(void **state) {
  int64_t at = 0;
  struct machine machine = {.number = 1, .stopped_until_us = 6 * 1000 * 1000};
  struct world_options with = options(3, STRATEGY_RANDOM);
  world_begin(&with);
  world_spawn(&machine, "stopped", note_the_time, &at);
  world_spawn(NULL, "end", stop_later, NULL);
  const char *why;
  assert_true(world_run(&why));
  world_end();
  assert_true(at > 6 * 1000 * 1000);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_locked_is_not_interrupted),
      cmocka_unit_test(what_is_not_locked_is_interrupted_under_each_strategy),
      cmocka_unit_test(a_seed_is_a_run),
      cmocka_unit_test(time_jumps_when_nobody_can_run),
      cmocka_unit_test(a_signal_ends_a_wait),
      cmocka_unit_test(a_deadlock_is_found_and_named),
      cmocka_unit_test(a_busy_loop_is_found),
      cmocka_unit_test(a_killed_machine_leaves_nothing),
      cmocka_unit_test(a_stopped_machine_does_not_run),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
