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
    poll_done(&pace, true, 1, at, at + 900);
    assert_true(poll_every_group(&pace, at + 901));
  }
  poll_done(&pace, true, 1, SECOND, SECOND + 300 * MS); /* one hiccup says nothing */
  assert_false(poll_every_group(&pace, SECOND + 300 * MS));
  poll_done(&pace, false, 1, SECOND + 300 * MS, SECOND + 301 * MS);
  assert_true(poll_every_group(&pace, SECOND + 301 * MS));
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
    poll_done(&pace, all, 1, now, now + took);
    now += took + 16 * MS;
  }
  assert_in_range(every, 10, 30);
  assert_true(busy < now / 100);
  /* With a reason it comes sooner, and when the purge has caught up it is as before. */
  pace.asked = true;
  assert_true(poll_every_group(&pace, pace.poll.ended_us + 1400 * MS));
  assert_false(poll_every_group(&pace, pace.poll.ended_us + 1300 * MS));
  poll_done(&pace, true, 1, now, now + 900);
  assert_false(pace.asked);
  assert_true(poll_every_group(&pace, now + 901));
}

enum { SHARDS = 8 };

/* What polling takes that goes on from `from` to `until`, with probes between: shard_us() of each shard, or 800 us for
 * known groups. *first is when the first poll of every group began. */
static int64_t poll_and_probe(struct poll_pace *pace, int64_t from, int64_t until, int64_t *first,
                              int64_t (*shard_us)(size_t shard)) {
  int64_t now = from, busy = 0, all_us = 0;
  for (size_t i = 0; i < SHARDS; i++)
    all_us += shard_us(i);
  for (*first = until; now < until; now += 16 * MS) {
    bool every = poll_every_group(pace, now);
    int64_t took = every ? all_us : 800;
    *first = every && *first == until ? now : *first;
    poll_done(pace, every, 1, now, now + took);
    busy += every ? took : 0;
    now += took;
    if (every || !poll_probe_is_next(pace, now))
      continue;
    took = shard_us(pace->probe.turn % SHARDS);
    poll_probe_done(pace, SHARDS, now, now + took);
    busy += took;
    now += took;
  }
  return busy;
}

static int64_t loading(size_t shard) { return 15 * MS; }
static int64_t idle(size_t shard) { return 100; }
static int64_t pinned_in_one(size_t shard) { return shard == 3 ? 300 * MS : 100; }

/* An open transaction with 150,000 rows: for as long as it is open, polls of every group are rare. */
static void a_rest_ends_soon_after_its_reason(void **state) {
  struct poll_pace pace = {0};
  int64_t first;
  poll_and_probe(&pace, 0, 10 * (int64_t)SECOND, &first, loading);
  assert_true(poll_is_dear(&pace));
  poll_and_probe(&pace, 10 * (int64_t)SECOND, 60 * (int64_t)SECOND, &first, idle);
  assert_true(first < 14 * (int64_t)SECOND);
  assert_false(poll_is_dear(&pace));
}

/* Shards that are quick do not make the dear one be polled more often. */
static void probes_are_rare_where_a_shard_is_dear(void **state) {
  struct poll_pace pace = {0};
  const int64_t until = 600 * (int64_t)SECOND;
  int64_t first;
  assert_true(poll_and_probe(&pace, 0, until, &first, pinned_in_one) < until / 40);
  assert_true(poll_is_dear(&pace));
}

/* 72,000 groups: 300 ms for all of them, and 30 ms for 256 of the known ones, of which there are 282 turns. */
static void many_groups_are_polled_as_a_whole(void **state) {
  struct poll_pace pace = {0};
  int64_t now = 0;
  int every = 0, polls = 0;
  for (; now < 60 * (int64_t)SECOND; polls++) {
    bool all = poll_every_group(&pace, now);
    int64_t took = all ? 300 * MS : 30 * MS;
    every += all;
    poll_done(&pace, all, all ? 1 : 282, now, now + took);
    now += took + 100 * MS;
  }
  assert_true(every >= polls / 2); /* each is followed by one of known groups, which shows that nothing is won */
}

/* The longest time without a whole poll from `from` to `until`, where each takes as long as took() says. */
static int64_t longest_rest(struct poll_pace *pace, int64_t from, int64_t until,
                            int64_t (*took)(bool every, int64_t now)) {
  int64_t longest = 0, ended = from;
  for (int64_t now = from; now < until; now += 16 * MS) {
    bool every = poll_every_group(pace, now);
    int64_t took_us = took(every, now);
    longest = every && now - ended > longest ? now - ended : longest;
    poll_done(pace, every, 1, now, now + took_us);
    now += took_us;
    ended = every ? now : ended;
  }
  return longest > until - ended ? longest : until - ended;
}

static int64_t far_away(bool every, int64_t now) { return 40 * MS; }

static int64_t slow_for_six_seconds(bool every, int64_t now) { return now < 6 * (int64_t)SECOND ? 600 * MS : 800; }

/* It stands still for 900 ms of each second. */
static int64_t throttled(bool every, int64_t now) {
  const int64_t at = now % SECOND;
  return at < 900 * MS ? 900 * MS - at + 500 : 500;
}

static int64_t pinned_for_ever(bool every, int64_t now) { return every ? 3 * (int64_t)SECOND : 800; }

/* A server that is slow, far away, or stands still now and then is no reason to leave anything out; and nothing waits
 * for longer than half a minute. */
static void polls_of_a_slow_server_are_whole(void **state) {
  struct poll_pace far = {0}, once = {0}, often = {0}, pinned = {0};
  const int64_t end = 120 * (int64_t)SECOND;
  assert_true(longest_rest(&far, 0, end, far_away) < 500 * MS);
  assert_true(longest_rest(&once, 0, end, slow_for_six_seconds) < 2 * SECOND);
  assert_true(longest_rest(&often, 0, end, throttled) < 3 * SECOND);
  assert_in_range(longest_rest(&pinned, 0, end, pinned_for_ever), 29 * SECOND, 31 * SECOND);
}

static void a_rest_is_a_share_of_the_time_with_an_end(void **state) {
  assert_int_equal(pace_rest_us(3 * MS, 20, SECOND), 60 * MS);
  assert_int_equal(pace_rest_us(50 * MS, 20, SECOND), SECOND);
  assert_int_equal(pace_rest_us(4 * SECOND, 20, SECOND), SECOND);
  assert_int_equal(pace_rest_us(INT64_MAX / 2, 200, SECOND), SECOND);
  assert_int_equal(pace_rest_us(0, 20, SECOND), 0);
}

/* A look of `took` for `found` rows that came late, and the one that it is compared with, if it is. */
static void look(struct poll_pace *pace, int64_t now, int64_t took, size_t found, size_t pages, int64_t part_took) {
  poll_late_done(pace, 0, now, took, found, pages);
  if (poll_late_compares(pace))
    poll_late_done(pace, 1, now, part_took, 0, 1);
  assert_false(poll_late_compares(pace));
}

/* Looking for what came late goes back to the beginning, unless what was deleted makes that long, and then too one time
 * in two hundred. What is found does not count, nor how many pages that takes, nor a server that is slow anyway. */
static void looking_for_what_came_late_stays_quick(void **state) {
  struct poll_pace pace = {0};
  const int64_t db_now = 1000 * (int64_t)SECOND, near = db_now - 10 * (int64_t)SECOND, now = SECOND;
  for (int i = 0; i < 10; i++) {
    look(&pace, now, 60 * MS, 4096, 1, 2 * MS);
    look(&pace, now, 400 * MS, 20000, 5, 42 * MS);
    look(&pace, now, 100 * MS, 0, 1, 90 * MS);
    assert_int_equal(poll_late_from_us(&pace, db_now, now), 0);
  }
  for (int i = 0; i < 4; i++) {
    assert_int_equal(poll_late_from_us(&pace, db_now, now), 0);
    look(&pace, now, 100 * MS, 0, 1, 2 * MS);
  }
  assert_int_equal(poll_late_from_us(&pace, db_now, now + 98 * 200 * MS - 1), near);
  assert_int_equal(poll_late_from_us(&pace, db_now, now + 98 * 200 * MS), 0);
  look(&pace, now, 100 * MS, 0, 1, 97 * MS);
  assert_int_equal(poll_late_from_us(&pace, db_now, now), 0);
}

/* The more is deleted within the time that a poll of known groups goes back, the less far it goes. */
static void polls_of_known_groups_go_back_as_far_as_is_quick(void **state) {
  struct poll_pace pace = {0};
  int64_t usual = poll_back_us(&pace);
  assert_int_equal(usual, 10 * SECOND);
  poll_done(&pace, false, 1, 0, 20 * MS);
  assert_int_equal(poll_back_us(&pace), usual / 2);
  for (int i = 0; i < 30; i++)
    poll_done(&pace, false, 1, 0, 20 * MS);
  assert_int_equal(poll_back_us(&pace), 2 * SECOND);
  for (int i = 0; i < 30; i++)
    poll_done(&pace, false, 1, 0, MS);
  assert_int_equal(poll_back_us(&pace), usual);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_group_is_polled_each_time_as_long_as_that_is_quick),
      cmocka_unit_test(a_dear_poll_of_every_group_is_rare),
      cmocka_unit_test(many_groups_are_polled_as_a_whole),
      cmocka_unit_test(a_rest_ends_soon_after_its_reason),
      cmocka_unit_test(probes_are_rare_where_a_shard_is_dear),
      cmocka_unit_test(polls_of_a_slow_server_are_whole),
      cmocka_unit_test(a_rest_is_a_share_of_the_time_with_an_end),
      cmocka_unit_test(looking_for_what_came_late_stays_quick),
      cmocka_unit_test(polls_of_known_groups_go_back_as_far_as_is_quick),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
