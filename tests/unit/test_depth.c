/* SPDX-License-Identifier: MIT
 *
 * How much of one route may be at a sink that works off all routes in turn: few of what is slow, so that it does not
 * stand before the others, and all there is room for where the sink is merely far away. A sink is played here, with a
 * time of its own: nothing waits.
 */
#include "core/depth.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MS = 1000, SECOND = 1000 * MS, LIMIT = 10000, ROOM = 2 * LIMIT };

/* Works off what it is given in order, each task for `each_us`, and its confirms take `away_us` more. */
struct sink {
  struct depth depth;
  int64_t each_us, away_us, now_us, free_us;
  int64_t handed_us[ROOM], confirm_us[ROOM];
  uint32_t ahead[ROOM];
  size_t given, confirmed;
};

static int set_up(void **state) {
  struct sink *sink = calloc(1, sizeof *sink);
  sink->now_us = 1000 * (int64_t)SECOND;
  *state = sink;
  return sink ? 0 : -1;
}

static int tear_down(void **state) {
  free(*state);
  return 0;
}

static uint32_t open_now(const struct sink *sink) { return (uint32_t)(sink->given - sink->confirmed); }

static void give(struct sink *sink) {
  size_t i = sink->given++ % ROOM;
  sink->free_us = (sink->free_us > sink->now_us ? sink->free_us : sink->now_us) + sink->each_us;
  sink->handed_us[i] = sink->now_us;
  sink->ahead[i] = open_now(sink);
  sink->confirm_us[i] = sink->free_us + sink->away_us;
}

static void confirm(struct sink *sink) {
  size_t i = sink->confirmed % ROOM;
  sink->now_us = sink->confirm_us[i] > sink->now_us ? sink->confirm_us[i] : sink->now_us;
  (void)depth_tick(&sink->depth, sink->now_us);
  (void)depth_learn(&sink->depth, LIMIT, sink->ahead[i], sink->handed_us[i], sink->now_us);
  sink->confirmed++;
}

/* A drain: there is always more. Returns the most that were there after the first `settle_us`. */
static uint32_t drain(struct sink *sink, int64_t time_us, int64_t settle_us) {
  uint32_t most = 0;
  int64_t from_us = sink->now_us;
  while (sink->now_us < from_us + time_us) {
    while (open_now(sink) < depth_now(&sink->depth) && open_now(sink) < LIMIT)
      give(sink);
    if (sink->now_us >= from_us + settle_us && open_now(sink) > most)
      most = open_now(sink);
    confirm(sink);
  }
  return most;
}

static double rate(struct sink *sink, int64_t time_us) {
  size_t before = sink->confirmed;
  int64_t from_us = sink->now_us;
  (void)drain(sink, time_us, 0);
  return (double)(sink->confirmed - before) * SECOND / (double)(sink->now_us - from_us);
}

/* An exchange with many queues: 10 ms a message. Never more than RabbitMQ takes from the socket before it stops
 * reading, and soon no more than it works off in half a second. */
static void what_is_slow_has_few_out(void **state) {
  struct sink *sink = *state;
  sink->each_us = 10 * MS;
  assert_true(drain(sink, 10 * SECOND, 0) <= 250);
  assert_true(drain(sink, 600 * (int64_t)SECOND, 10 * SECOND) <= 60); /* however long it lasts */
  assert_true(rate(sink, 60 * SECOND) > 98);
}

/* One task takes longer than what may be waited for: a few stay out, so the sink is never idle. */
static void what_is_very_slow_goes_on(void **state) {
  struct sink *sink = *state;
  sink->each_us = SECOND;
  (void)drain(sink, 1000 * (int64_t)SECOND, 0);
  assert_true(drain(sink, 1000 * (int64_t)SECOND, 0) <= 4 * DEPTH_LEAST);
  assert_true(rate(sink, 600 * (int64_t)SECOND) > 0.95);
}

/* Distance is no slowness: a far sink gets all that a near one gets, within a second. */
static void what_is_far_gets_all(void **state) {
  static const int64_t away_us[] = {1 * MS, 5 * MS, 50 * MS, 200 * MS, 1000 * MS};
  for (size_t i = 0; i < sizeof away_us / sizeof *away_us; i++) {
    struct sink *sink = *state;
    memset(sink, 0, sizeof *sink);
    sink->now_us = 1000 * (int64_t)SECOND;
    sink->each_us = 50; /* 20,000 a second */
    sink->away_us = away_us[i];
    double possible = away_us[i] < 500 * MS ? 20000 : 10000;
    (void)drain(sink, 4 * away_us[i] + 100 * MS, 0);
    assert_true(rate(sink, 60 * (int64_t)SECOND) > 0.97 * possible);
  }
}

/* It was quick, and becomes slow: what is out is worked off, and no more than a few come after it. */
static void what_becomes_slow_is_held_back(void **state) {
  struct sink *sink = *state;
  sink->each_us = 50;
  assert_true(drain(sink, 20 * SECOND, SECOND) <= 20 * (DEPTH_SLACK_US / MS + 50)); /* what it confirms in that time */
  sink->each_us = 10 * MS;
  (void)drain(sink, 60 * (int64_t)SECOND, 0);
  assert_true(drain(sink, 20 * (int64_t)SECOND, 0) <= 60);
}

/* The way there becomes longer while it is in use: that is found out, and it is quick again. */
static void a_longer_way_is_found_out(void **state) {
  struct sink *sink = *state;
  sink->each_us = 50;
  sink->away_us = 5 * MS;
  (void)drain(sink, 5 * SECOND, 0);
  sink->away_us = 600 * MS;
  (void)drain(sink, 30 * SECOND, 0);
  assert_true(rate(sink, 60 * (int64_t)SECOND) > 0.9 * 10000 / 0.6);
}

/* A quick lane that has had little to do begins carefully when it has much: it may not be quick any more. And one that
 * never had much gains no room by that. */
static void what_is_of_no_use_is_taken_back(void **state) {
  struct sink *sink = *state;
  sink->each_us = 50;
  (void)drain(sink, 5 * SECOND, 0);
  assert_true(depth_now(&sink->depth) > 2 * DEPTH_FIRST);
  while (open_now(sink) > 0)
    confirm(sink);
  for (int i = 0; i < 300; i++, sink->now_us += 100 * MS) {
    give(sink);
    confirm(sink);
  }
  assert_int_equal(depth_now(&sink->depth), DEPTH_FIRST);
}

/* The limit of the route counts in any case, and no arithmetic goes wrong with odd times. */
static void odd_values(void **state) {
  struct depth depth = {0};
  assert_int_equal(depth_now(&depth), DEPTH_FIRST);
  for (int i = 0; i < 1000; i++)
    (void)depth_learn(&depth, 250, 250, 100 + i, 90 + i); /* confirmed before it was handed over */
  assert_int_equal(depth_now(&depth), 250);
  for (int i = 1; i < 100; i++)
    (void)depth_learn(&depth, 250, 250, (int64_t)i << 55, ((int64_t)i << 55) + ((int64_t)1 << 54));
  assert_int_equal(depth_now(&depth), DEPTH_LEAST);
  assert_false(depth_tick(&(struct depth){0}, 0));
  (void)state;
}

#define ROW(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      ROW(what_is_slow_has_few_out),
      ROW(what_is_very_slow_goes_on),
      ROW(what_is_far_gets_all),
      ROW(what_becomes_slow_is_held_back),
      ROW(a_longer_way_is_found_out),
      ROW(what_is_of_no_use_is_taken_back),
      ROW(odd_values),
  };
  return cmocka_run_group_tests_name("depth", tests, NULL, NULL);
}
