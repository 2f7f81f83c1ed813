/* SPDX-License-Identifier: MIT
 *
 * Which poll is next, and how far back one looks: pure rules, in time that passes by itself.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/poll_pace.h"

enum { MS = 1000, SECOND = 1000 * MS };

static void every_group_is_polled_each_time_as_long_as_that_is_quick(void **state) {
  struct poll_pace pace = {0};
  assert_true(poll_every_group(&pace, 0));
  for (int64_t at = 0; at < SECOND; at += 100 * MS) {
    poll_done(&pace, true, at, at + 900);
    assert_true(poll_every_group(&pace, at + 901));
  }
  poll_done(&pace, true, SECOND, SECOND + 300 * MS); /* one hiccup says nothing */
  assert_true(poll_every_group(&pace, SECOND + 300 * MS));
}

/* 400,000 deleted rows that cannot be purged make that take 140 ms: it is done seldom enough for less than one task in
 * a hundred to meet it. */
static void a_dear_poll_of_every_group_is_rare(void **state) {
  struct poll_pace pace = {0};
  int64_t now = 0, busy = 0;
  int every = 0;
  while (now < 600 * (int64_t)SECOND) {
    bool all = poll_every_group(&pace, now);
    int64_t took = all ? 140 * MS : 800;
    every += all;
    busy += all ? took : 0;
    poll_done(&pace, all, now, now + took);
    now += took + 16 * MS;
  }
  assert_in_range(every, 10, 30);
  assert_true(busy < now / 100);
  /* With a reason it comes sooner, and when the purge has caught up it is as before. */
  pace.asked = true;
  assert_true(poll_every_group(&pace, pace.poll.ended_us + 1400 * MS));
  assert_false(poll_every_group(&pace, pace.poll.ended_us + 1300 * MS));
  poll_done(&pace, true, now, now + 900);
  assert_false(pace.asked);
  assert_true(poll_every_group(&pace, now + 901));
}

/* A slow server, or one far away, is no reason to leave anything out. */
static void polls_of_a_slow_server_are_whole(void **state) {
  struct poll_pace pace = {0};
  int64_t now = 0, longest = 0;
  while (now < 60 * (int64_t)SECOND) {
    bool all = poll_every_group(&pace, now);
    if (now - pace.poll.ended_us > longest)
      longest = now - pace.poll.ended_us;
    poll_done(&pace, all, now, now + 40 * MS);
    now += 56 * MS;
  }
  assert_true(longest < 500 * MS);
}

/* Looking for what came late goes back to the beginning, unless what was deleted makes that long, and then too one time
 * in two hundred. What is found does not count, nor a server that is slow at ten seconds too. */
static void looking_for_what_came_late_stays_quick(void **state) {
  struct poll_pace pace = {0};
  const int64_t db_now = 1000 * (int64_t)SECOND, near = db_now - 10 * (int64_t)SECOND, now = SECOND;
  poll_late_done(&pace, 0, now, 100 * MS, 0);
  poll_late_done(&pace, 0, now, 40 * MS, 4096);
  assert_int_equal(poll_late_from_us(&pace, db_now, now), 0);
  poll_late_done(&pace, 0, now, 100 * MS, 0);
  poll_late_done(&pace, 0, now, 120 * MS, 0);
  assert_int_equal(poll_late_from_us(&pace, db_now, now), near);
  poll_late_done(&pace, near, now, 2 * MS, 0);
  poll_late_done(&pace, near, now, 2 * MS, 0);
  assert_int_equal(poll_late_from_us(&pace, db_now, now + 98 * 200 * MS - 1), near);
  assert_int_equal(poll_late_from_us(&pace, db_now, now + 98 * 200 * MS), 0);
  poll_late_done(&pace, near, now, 98 * MS, 0);
  poll_late_done(&pace, near, now, 97 * MS, 0);
  assert_int_equal(poll_late_from_us(&pace, db_now, now), 0);
}

/* The more is deleted within the time that a poll of known groups goes back, the less far it goes. */
static void polls_of_known_groups_go_back_as_far_as_is_quick(void **state) {
  struct poll_pace pace = {0};
  int64_t usual = poll_back_us(&pace);
  assert_int_equal(usual, 10 * SECOND);
  poll_done(&pace, false, 0, 20 * MS);
  assert_int_equal(poll_back_us(&pace), usual / 2);
  for (int i = 0; i < 30; i++)
    poll_done(&pace, false, 0, 20 * MS);
  assert_int_equal(poll_back_us(&pace), 2 * SECOND);
  for (int i = 0; i < 30; i++)
    poll_done(&pace, false, 0, MS);
  assert_int_equal(poll_back_us(&pace), usual);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_group_is_polled_each_time_as_long_as_that_is_quick),
      cmocka_unit_test(a_dear_poll_of_every_group_is_rare),
      cmocka_unit_test(polls_of_a_slow_server_are_whole),
      cmocka_unit_test(looking_for_what_came_late_stays_quick),
      cmocka_unit_test(polls_of_known_groups_go_back_as_far_as_is_quick),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
