/* SPDX-License-Identifier: MIT
 *
 * A lane's credit: concurrency, bytes, rate, pause, the destination's trouble; and which group is read next.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "core/lane.h"

enum { SECOND = 1000000 };

struct fixture {
  struct route_config route;
  struct driver driver;
  struct lane lane;
};

static void make(struct fixture *f) {
  *f = (struct fixture){0};
  f->route = (struct route_config){.concurrency = 100, .inflight_bytes = 10000};
  f->driver.max_inflight = 1000;
  f->lane.route = &f->route;
  f->lane.driver = &f->driver;
}

static void credit_is_the_least_of_all_limits(void **state) {
  struct fixture f;
  make(&f);
  assert_int_equal(lane_credit(&f.lane, 1000, 0), 40); /* 10000 bytes at 256 each and one more */
  f.route.inflight_bytes = 1 << 20;
  assert_int_equal(lane_credit(&f.lane, 1000, 0), 100);
  assert_int_equal(lane_credit(&f.lane, 30, 0), 30);
  f.driver.max_inflight = 20;
  assert_int_equal(lane_credit(&f.lane, 1000, 0), 20);
  f.lane.paused = true;
  assert_int_equal(lane_credit(&f.lane, 1000, 0), 0);
  f.lane.paused = false;
  f.lane.route = NULL;
  assert_int_equal(lane_credit(&f.lane, 1000, 0), 0);
}

static void charge_and_refund_balance(void **state) {
  struct fixture f;
  make(&f);
  struct task task = {.payload_len = 5000};
  lane_charge(&f.lane, &task, 0);
  lane_charge(&f.lane, &task, 0);
  assert_int_equal(lane_credit(&f.lane, 1000, 0), 0); /* the bytes are used up */
  assert_int_equal(f.lane.in_flight, 2);
  lane_refund(&f.lane, &task, true);
  lane_refund(&f.lane, &task, true);
  assert_int_equal(f.lane.in_flight, 0);
  assert_int_equal(f.lane.bytes_in_flight, 0);
  f.route.inflight_bytes = 100; /* one that is larger than the whole credit may go when it is alone */
  assert_true(lane_credit(&f.lane, 1000, 0) >= 1);
}

static void rate_lets_through_what_it_says(void **state) {
  struct fixture f;
  make(&f);
  struct task task = {.payload_len = 1};
  f.route.rate = 100;
  int64_t now = 10 * SECOND;
  unsigned sent = 0;
  for (int64_t end = now + 2 * SECOND; now < end; now += 1000)
    for (uint32_t credit = lane_credit(&f.lane, 1000, now); credit > 0; credit--, sent++) {
      lane_charge(&f.lane, &task, now);
      lane_refund(&f.lane, &task, true);
    }
  assert_in_range(sent, 195, 215);
  f.lane.tokens = 0;
  f.lane.tokens_at_us = now;
  assert_in_range(lane_wakes_at(&f.lane, now), now + 10000, now + 10002);
}

/* What was read and put back is sent later: it must not have used up the rate meanwhile. */
static void what_was_never_sent_does_not_count_for_the_rate(void **state) {
  struct fixture f;
  make(&f);
  struct task task = {.payload_len = 1};
  f.route.rate = 100;
  int64_t now = 10 * SECOND;
  f.lane.tokens_at_us = now;
  f.lane.tokens = 10;
  for (int i = 0; i < 1000; i++) {
    assert_true(lane_credit(&f.lane, 1000, now) > 0);
    lane_charge(&f.lane, &task, now);
    lane_refund(&f.lane, &task, false);
  }
  assert_int_equal(lane_credit(&f.lane, 1000, now), 10);
  lane_charge(&f.lane, &task, now);
  lane_refund(&f.lane, &task, true);
  assert_int_equal(lane_credit(&f.lane, 1000, now), 9);
}

static void a_quick_destination_is_read_ahead_of(void **state) {
  struct fixture f;
  make(&f);
  f.route.inflight_bytes = 1 << 20;
  for (int64_t now = 0; now <= SECOND; now += 20) /* 50 tasks in a millisecond */
    lane_note_done(&f.lane, now);
  assert_in_range(lane_credit(&f.lane, 4000, 0), 1090, 1110); /* the room and 20 ms worth of them */
  f.lane.in_flight = 1100;
  assert_int_equal(lane_credit(&f.lane, 4000, 0), 0);
  f.lane.in_flight = 0;
  f.driver.max_inflight = 100; /* of the plugin's, as of the route's, concurrency */
  assert_in_range(lane_credit(&f.lane, 4000, 0), 1090, 1110);
  f.route.rate = 1e6;
  f.lane.tokens = 1e6;
  assert_int_equal(lane_credit(&f.lane, 4000, 0), 100);
}

/* Only what another lane on the same plugin instance has at the sink takes places there. */
static void lanes_share_the_sink_not_what_is_read_ahead(void **state) {
  struct fixture f;
  make(&f);
  f.route.concurrency = 32;
  f.driver.max_inflight = 64;
  f.driver.at_sink = 32; /* of the other lane */
  assert_int_equal(lane_room(&f.lane), 32);
}

/* Long calls hold most places; the others are used although few rows are worth no statement otherwise. */
static void free_places_for_long_calls_are_used(void **state) {
  struct fixture f;
  make(&f);
  f.route.concurrency = 32;
  f.route.claim = CLAIM_RECORDED;
  f.lane.done_per_ms = 0.08;
  f.lane.in_flight = 27;
  assert_true(lane_credit(&f.lane, 2000, 0) >= 5);
}

static void suspend(struct lane *lane, int64_t now) {
  assert_true(health_down(&lane->health, &(struct health_trouble){.message = "down", .retry_after_ms = -1}, now));
}

static void a_probe_that_found_no_room_waits(void **state) {
  struct fixture f;
  make(&f);
  struct task task = {.id = 7};
  suspend(&f.lane, 0);
  int64_t now = lane_wakes_at(&f.lane, 0);
  assert_int_equal(lane_credit(&f.lane, 1000, now), 1);
  assert_true(lane_send(&f.lane, &task));
  lane_probe_lost(&f.lane, 8, now); /* another task of the lane */
  assert_int_equal(lane_wakes_at(&f.lane, now), INT64_MAX);
  lane_probe_lost(&f.lane, 7, now);
  assert_int_equal(lane_credit(&f.lane, 1000, now), 0);
  assert_true(lane_wakes_at(&f.lane, now) > now);
}

static void after_an_outage_concurrency_grows_step_by_step(void **state) {
  struct fixture f;
  make(&f);
  suspend(&f.lane, 0);
  assert_int_equal(lane_room(&f.lane), 0);
  assert_true(health_answered(&f.lane.health, true, 100));
  assert_int_equal(lane_room(&f.lane), 4);
  for (int i = 0; i < 10; i++)
    assert_false(health_answered(&f.lane.health, true, 100));
  assert_int_equal(lane_room(&f.lane), 14);
  for (int i = 0; i < 90; i++)
    (void)health_answered(&f.lane.health, true, 100);
  assert_int_equal(f.lane.health.state, HEALTH_OK);
  assert_int_equal(lane_room(&f.lane), 100);
}

static void a_suspended_lane_probes_with_one(void **state) {
  struct fixture f;
  make(&f);
  struct task task = {.id = 7};
  suspend(&f.lane, 0);
  lane_limit(&f.lane);
  assert_int_equal(f.lane.at_sink_max, 0);
  assert_int_equal(lane_credit(&f.lane, 1000, 0), 0);
  int64_t first = lane_wakes_at(&f.lane, 0);
  assert_int_equal(lane_credit(&f.lane, 1000, first), 1);
  f.lane.at_sink = 3; /* they may take long to fail */
  assert_true(lane_send(&f.lane, &task));
  assert_int_equal(f.lane.at_sink_max, 4);
  lane_limit(&f.lane); /* something else has changed meanwhile: the probe keeps its place */
  assert_int_equal(f.lane.at_sink_max, 4);
  assert_int_equal(lane_credit(&f.lane, 1000, first), 0);
  assert_int_equal(lane_credit(&f.lane, 1000, first + 100 * SECOND), 0); /* it is still out */
}

/* A stalled lane may send one task in the time in which it should be confirmed, however few its places are. */
static void a_stalled_lane_probes_with_one(void **state) {
  struct fixture f;
  make(&f);
  int64_t now = 10 * SECOND;
  (void)stall_handed_over(&f.lane.stall, now);
  f.lane.in_flight = 90;
  now += STALL_FIRST_US - 1;
  lane_follow_stall(&f.lane, now);
  assert_false(f.lane.stalled);
  now++;
  lane_follow_stall(&f.lane, now);
  assert_true(f.lane.stalled);
  assert_int_equal(lane_credit(&f.lane, 1000, now), 1);
  stall_probed(&f.lane.stall, now);
  assert_int_equal(lane_credit(&f.lane, 1000, now), 0);
  assert_int_equal(lane_wakes_at(&f.lane, now), now + STALL_FIRST_US);
  assert_int_equal(lane_credit(&f.lane, 1000, now + STALL_FIRST_US), 1);
  f.lane.in_flight = 100;
  assert_int_equal(lane_credit(&f.lane, 1000, now + STALL_FIRST_US), 0);
  assert_int_equal(lane_wakes_at(&f.lane, now + STALL_FIRST_US), INT64_MAX); /* until some come back */
  f.route.claim = CLAIM_RECORDED;                                            /* of these the rows say what they are */
  lane_follow_stall(&f.lane, now);
  assert_false(f.lane.stalled);
  stall_refused(&f.lane.stall, now);
  stall_refused(&f.lane.stall, now + STALL_REFUSED_US);
  lane_follow_stall(&f.lane, now + STALL_REFUSED_US); /* but a sink that takes none of them stands still */
  assert_true(f.lane.stalled);
}

static void the_highest_priority_is_read_first(void **state) {
  struct fixture f;
  make(&f);
  struct group *low = lane_group(&f.lane, 0, 1, true);
  struct group *early = lane_group(&f.lane, 1, 5, true);
  struct group *late = lane_group(&f.lane, 2, 5, true);
  struct group *high = lane_group(&f.lane, 3, 9, true);
  struct group *const all[] = {low, early, late, high};
  for (size_t i = 0; i < 4; i++) {
    assert_non_null(all[i]);
    all[i]->readable = true;
    all[i]->next_us = 100;
  }
  late->next_us = 200;
  high->next_us = 900; /* not due yet */
  struct group *due[4];
  assert_int_equal(lane_due_groups(&f.lane, 500, due, 4), 3);
  assert_ptr_equal(due[0], early);
  assert_ptr_equal(due[1], late);
  assert_ptr_equal(due[2], low);
  assert_int_equal(lane_due_groups(&f.lane, 500, due, 2), 2); /* the best two, whatever order they are found in */
  assert_ptr_equal(due[0], early);
  assert_ptr_equal(due[1], late);
  early->readable = false; /* its shard is not ours any more */
  assert_int_equal(lane_due_groups(&f.lane, 500, due, 1), 1);
  assert_ptr_equal(due[0], late);
  assert_int_equal(lane_due_groups(&f.lane, 900, due, 1), 1);
  assert_ptr_equal(due[0], high);
  assert_int_equal(lane_due_groups(&f.lane, 50, due, 4), 0);
  assert_null(lane_swept_group(&f.lane));
  low->sweep = late->sweep = true;
  assert_ptr_equal(lane_swept_group(&f.lane), late);
  assert_ptr_equal(lane_group(&f.lane, 3, 9, false), high);
  assert_null(lane_group(&f.lane, 3, 8, false));
  low->in_flight = 1;
  lane_forget_groups(&f.lane, 7); /* nothing was seen: only what is out stays */
  assert_ptr_equal(f.lane.groups, low);
  low->in_flight = 0;
  lane_forget_groups(&f.lane, 7);
  assert_null(f.lane.groups);
}

/* Whoever may insert may ask for long calls. A route of which those have all places, while others wait, is full once
 * that lasts longer than calls do by the route's own word, and no place becomes free. */
static void a_lane_that_only_long_calls_have_is_full(void **state) {
  struct fixture f;
  make(&f);
  int64_t limit_us = 3 * SECOND + READY_STUCK_US;
  f.route.claim = CLAIM_RECORDED;
  f.route.timeout_ms = 3000;
  assert_false(lane_is_full(&f.lane));
  atomic_store(&f.lane.at_sink, 99);
  assert_false(lane_is_full(&f.lane));
  f.lane.bytes_in_flight = f.route.inflight_bytes;
  assert_true(lane_is_full(&f.lane));
  f.lane.bytes_in_flight = 0;
  atomic_store(&f.lane.at_sink, 100);
  assert_true(lane_is_full(&f.lane));
  assert_false(lane_follow_places(&f.lane, true, SECOND));
  assert_false(lane_follow_places(&f.lane, true, SECOND + limit_us));
  assert_int_equal(gauge_value(&f.lane.full_since_us), 0);
  assert_true(lane_follow_places(&f.lane, true, SECOND + limit_us + 1));
  assert_int_equal(gauge_value(&f.lane.full_since_us), SECOND);
  assert_false(lane_follow_places(&f.lane, true, 2 * (SECOND + limit_us)));
  assert_true(lane_follow_places(&f.lane, false, 2 * (SECOND + limit_us))); /* nothing waits */
  assert_int_equal(gauge_value(&f.lane.full_since_us), 0);
  assert_false(lane_follow_places(&f.lane, true, 3 * (SECOND + limit_us)));
  lane_note_left(&f.lane); /* it is taken at once by the next one */
  assert_false(lane_follow_places(&f.lane, true, 4 * (SECOND + limit_us)));
  f.lane.paused = true;
  assert_false(lane_is_full(&f.lane));
  f.lane.paused = false;
  f.route.claim = CLAIM_MEMORY; /* of that one says that it is stalled, long before */
  assert_false(lane_is_full(&f.lane));
}

static struct flight parked_flight(struct task *task, struct fixture *f) {
  return (struct flight){.task = task, .lane = &f->lane, .driver = &f->driver, .group = (struct group *)f};
}

/* Tasks that were sent, and whose rows somebody keeps locked, kept all places of their route, as long as that lasted.
 * They are some thousands at most, and no more bytes than a route may have once. */
static void parked_tasks_leave_their_places_to_others(void **state) {
  enum { SENT = LANE_PARKED_MAX + 200 };
  static struct flight flights[SENT];
  struct fixture f;
  make(&f);
  struct task task = {.payload_len = 1};
  f.route.inflight_bytes = 1 << 20;
  for (unsigned i = 0; i < 100; i++) {
    flights[i] = parked_flight(&task, &f);
    lane_charge(&f.lane, &task, 0);
  }
  assert_int_equal(lane_credit(&f.lane, 1000, 0), 0);
  for (unsigned i = 0; i < 100; i++) {
    assert_int_equal(lane_is_wary(&f.lane), i >= LANE_WARY_FROM);
    lane_park(&f.lane, &flights[i]);
  }
  assert_int_equal(lane_credit(&f.lane, 1000, 0), 100);
  assert_int_equal(f.lane.in_flight, 100);
  for (unsigned i = 100; i < SENT; i++) {
    flights[i] = parked_flight(&task, &f);
    lane_charge(&f.lane, &task, 0);
    lane_park(&f.lane, &flights[i]);
  }
  assert_int_equal(lane_credit(&f.lane, 1000, 0), 0);
  for (unsigned i = 0; i < SENT; i++) {
    lane_unpark(&f.lane, &flights[i]);
    lane_unpark(&f.lane, &flights[i]);
    lane_refund(&f.lane, &task, true);
  }
  assert_int_equal(lane_credit(&f.lane, 1000, 0), 100);
  assert_false(lane_is_wary(&f.lane));
}

static void parked_bytes_leave_their_places_to_others(void **state) {
  struct fixture f;
  make(&f);
  struct task task = {.payload_len = 6000};
  struct flight flights[4];
  for (int i = 0; i < 2; i++)
    lane_charge(&f.lane, &task, 0);
  assert_int_equal(lane_credit(&f.lane, 1000, 0), 0);
  for (int i = 0; i < 4; i++)
    flights[i] = parked_flight(&task, &f);
  lane_park(&f.lane, &flights[0]);
  assert_true(lane_credit(&f.lane, 1000, 0) > 0);
  lane_park(&f.lane, &flights[1]);
  bool alone;
  assert_int_equal(lane_bytes(&f.lane, &alone), 8000); /* of 10000, beyond which they may have no more than 10000 */
  assert_true(alone);
}

/* Those that end without having been sent have bounds of their own. */
static void parked_ends_leave_their_places_to_others(void **state) {
  enum { ENDING = 4096 };
  struct fixture f;
  make(&f);
  struct task task = {.state = TASK_AWAITING};
  struct flight flight = parked_flight(&task, &f);
  flight.driver = NULL;
  flight.group = NULL;
  for (unsigned i = 0; i < ENDING; i++)
    lane_begin(&f.lane, &task);
  f.lane.unread = ENDING;
  assert_true(lane_ends_many(&f.lane));
  lane_park(&f.lane, &flight);
  assert_false(lane_ends_many(&f.lane));
  assert_int_equal(lane_unread(&f.lane), ENDING - 1);
  assert_false(lane_is_wary(&f.lane));
  lane_unpark(&f.lane, &flight);
  assert_true(lane_ends_many(&f.lane));
  assert_int_equal(lane_unread(&f.lane), ENDING);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(credit_is_the_least_of_all_limits),
      cmocka_unit_test(charge_and_refund_balance),
      cmocka_unit_test(rate_lets_through_what_it_says),
      cmocka_unit_test(what_was_never_sent_does_not_count_for_the_rate),
      cmocka_unit_test(a_quick_destination_is_read_ahead_of),
      cmocka_unit_test(lanes_share_the_sink_not_what_is_read_ahead),
      cmocka_unit_test(free_places_for_long_calls_are_used),
      cmocka_unit_test(a_probe_that_found_no_room_waits),
      cmocka_unit_test(after_an_outage_concurrency_grows_step_by_step),
      cmocka_unit_test(a_suspended_lane_probes_with_one),
      cmocka_unit_test(a_stalled_lane_probes_with_one),
      cmocka_unit_test(the_highest_priority_is_read_first),
      cmocka_unit_test(a_lane_that_only_long_calls_have_is_full),
      cmocka_unit_test(parked_tasks_leave_their_places_to_others),
      cmocka_unit_test(parked_bytes_leave_their_places_to_others),
      cmocka_unit_test(parked_ends_leave_their_places_to_others),
  };
  return cmocka_run_group_tests_name("lane", tests, NULL, NULL);
}
