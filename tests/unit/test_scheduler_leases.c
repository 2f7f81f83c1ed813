/* SPDX-License-Identifier: MIT
 *
 * Which lanes read a shard that is leaving: a lane whose tasks are out for long stops no other one (P8).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/clock.h"
#include "core/scheduler.h"

enum { LEAVING = 1, STAYING = 2, EPOCH = 7, MS = 1000, SECOND = 1000 * MS, LANES = 4 };
/* Of a quick lane, however slow this machine is: it was read in an hour. */
#define NEVER_OLD (-INT64_C(3600) * SECOND)

struct fixture {
  struct scheduler s;
  struct leases leases;
  struct flight_table flights;
  struct route_config route;
  struct lane lanes[LANES];
  struct task tasks[16];
  struct task_batch batch;
  size_t task_count, told;
};

static void release(struct task_batch *batch) {}
static void told(void *engine) { ((struct fixture *)engine)->told++; }

static int set_up(void **state) {
  struct fixture *f = calloc(1, sizeof *f);
  assert_non_null(f);
  leases_init(&f->leases);
  f->s = (struct scheduler){.leases = &f->leases, .flights = &f->flights, .lanes = f->lanes, .engine = f};
  f->s.shard_empty = told;
  f->batch = (struct task_batch){.open = 16, .count = 16, .tasks = f->tasks, .release = release};
  for (size_t i = 0; i < LANES; i++) {
    f->lanes[i].route = &f->route;
    f->lanes[i].next = i + 1 < LANES ? &f->lanes[i + 1] : NULL;
    for (uint8_t shard = LEAVING; shard <= STAYING; shard++) {
      struct group *group = lane_group(&f->lanes[i], shard, 5, true);
      assert_non_null(group);
      group->epoch = EPOCH;
    }
  }
  leases_gain(&f->leases, LEAVING, EPOCH, clock_instant(), INT64_C(3600) * SECOND, false);
  leases_gain(&f->leases, STAYING, EPOCH, clock_instant(), INT64_C(3600) * SECOND, false);
  *state = f;
  return 0;
}

static int tear_down(void **state) {
  struct fixture *f = *state;
  for (size_t i = 0; i < LANES; i++) {
    while (f->lanes[i].groups) {
      struct group *group = f->lanes[i].groups;
      f->lanes[i].groups = group->next;
      free(group);
    }
    order_free(&f->lanes[i].order);
  }
  flight_table_free(&f->flights);
  leases_destroy(&f->leases);
  free(f);
  return 0;
}

/* A task of the shard is out, and was read so long ago. */
static struct flight *fly(struct fixture *f, struct lane *lane, uint8_t shard, int64_t age_us) {
  struct task *task = &f->tasks[f->task_count++];
  *task = (struct task){.id = f->task_count, .shard = shard, .batch = &f->batch};
  struct flight *flight = flight_take(&f->flights, task);
  assert_non_null(flight);
  flight->lane = lane;
  flight->read_us = clock_mono_us() - age_us;
  atomic_fetch_add(&f->leases.in_flight[shard], 1);
  return flight;
}

static void land(struct fixture *f, struct flight *flight) {
  atomic_fetch_sub(&f->leases.in_flight[flight->task->shard], 1);
  flight_give_back(&f->flights, flight);
}

static void tick(struct fixture *f) {
  f->s.leave_at_us = 0; /* it is time */
  scheduler_follow_leases(&f->s);
}

/* Both from what the scheduler says and what the reader goes by. */
static bool reads(struct fixture *f, size_t lane, uint8_t shard) {
  bool reads = scheduler_epoch(&f->s, &f->lanes[lane], shard) == EPOCH;
  if (!reads)
    assert_int_equal(lane_group(&f->lanes[lane], shard, 5, false)->epoch, 0);
  return reads;
}

static bool may_give_back(struct fixture *f) {
  return leases_give_back(&f->leases, (struct shard_lease){.shard = LEAVING, .epoch = EPOCH}, &(bool){false});
}

static void a_slow_lane_stops_no_other_one(void **state) {
  struct fixture *f = *state;
  enum { SLOW, QUICK };
  f->lanes[SLOW].out_us = 4 * SECOND;
  tick(f);
  assert_true(reads(f, SLOW, LEAVING));
  struct flight *call = fly(f, &f->lanes[SLOW], LEAVING, NEVER_OLD),
                *quick = fly(f, &f->lanes[QUICK], LEAVING, NEVER_OLD);
  leases_leave(&f->leases, LEAVING, clock_mono_us());
  for (int i = 0; i < 3; i++) {
    tick(f);
    assert_false(reads(f, SLOW, LEAVING));
    assert_true(reads(f, QUICK, LEAVING));
    assert_true(reads(f, SLOW, STAYING));
    assert_false(may_give_back(f));
  }
  land(f, call);
  tick(f);
  assert_false(reads(f, QUICK, LEAVING)); /* for as long as its own take */
  assert_true(reads(f, QUICK, STAYING));
  assert_int_equal(f->told, 0);
  assert_false(may_give_back(f));
  land(f, quick);
  tick(f);
  tick(f);
  assert_int_equal(f->told, 1);
  assert_true(may_give_back(f));
}

/* Nothing has come back yet, so that nobody knows how long they take. */
static void what_is_out_for_long_is_slow(void **state) {
  struct fixture *f = *state;
  enum { SLOW, QUICK };
  struct flight *call = fly(f, &f->lanes[SLOW], LEAVING, 3600 * (int64_t)SECOND);
  leases_leave(&f->leases, LEAVING, clock_mono_us());
  tick(f);
  assert_false(reads(f, SLOW, LEAVING));
  assert_true(reads(f, QUICK, LEAVING));
  assert_true(reads(f, SLOW, STAYING));
  land(f, call);
}

static void the_slowest_stop_first(void **state) {
  struct fixture *f = *state;
  static const int64_t takes_us[LANES] = {8 * SECOND, 900 * MS, 200 * MS, 5 * MS};
  struct flight *out[LANES];
  for (size_t i = 0; i < LANES; i++) {
    f->lanes[i].out_us = takes_us[i];
    out[i] = fly(f, &f->lanes[i], LEAVING, NEVER_OLD);
  }
  leases_leave(&f->leases, LEAVING, clock_mono_us());
  for (size_t stopped = 0; stopped < LANES; stopped++) {
    tick(f);
    for (size_t i = 0; i < LANES; i++)
      assert_int_equal(reads(f, i, LEAVING), i > stopped);
    land(f, out[stopped]);
  }
  tick(f);
  assert_true(may_give_back(f));
}

static void all_read_it_again_where_it_stays(void **state) {
  struct fixture *f = *state;
  enum { SLOW, QUICK };
  struct flight *call = fly(f, &f->lanes[SLOW], LEAVING, 3600 * (int64_t)SECOND);
  leases_leave(&f->leases, LEAVING, 0);
  tick(f);
  assert_false(reads(f, SLOW, LEAVING));
  f->lanes[SLOW].old_shards = f->lanes[QUICK].old_shards = 0;
  leases_stay(&f->leases, 10, 5);
  f->s.look_at_us = INT64_MAX;
  tick(f);
  assert_true(reads(f, SLOW, LEAVING) && reads(f, QUICK, LEAVING));
  assert_int_equal(f->s.look_at_us, 0); /* which finds what it is to read there */
  assert_true(f->lanes[SLOW].old_shards & shard_bit(LEAVING));
  assert_false(f->lanes[QUICK].old_shards & shard_bit(LEAVING));
  land(f, call);
}

static void nobody_reads_where_the_daemon_ends_alone(void **state) {
  struct fixture *f = *state;
  tick(f);
  leases_leave_all(&f->leases, clock_mono_us(), 0);
  tick(f);
  for (size_t i = 0; i < LANES; i++)
    assert_false(reads(f, i, LEAVING) || reads(f, i, STAYING));
  assert_int_equal(f->told, 1);
  assert_true(may_give_back(f));
}

static void slow_lanes_stop_first_where_it_ends_beside_others(void **state) {
  struct fixture *f = *state;
  enum { SLOW, QUICK };
  struct flight *call = fly(f, &f->lanes[SLOW], LEAVING, 3600 * (int64_t)SECOND);
  leases_leave_all(&f->leases, 0, 1);
  tick(f);
  assert_false(reads(f, SLOW, LEAVING));
  assert_true(reads(f, QUICK, LEAVING));
  assert_false(reads(f, QUICK, STAYING)); /* nothing of that is out: it may be given back */
  assert_false(may_give_back(f));
  land(f, call);
  tick(f);
  assert_false(reads(f, QUICK, LEAVING));
  assert_true(may_give_back(f));
}

/* Whoever has it now finds out what there is: it used to have the heads of all order_keys read anew, for which all
 * routes wait, and every group polled each 5 ms for as long as the shard was elsewhere. */
static void a_shard_that_goes_costs_the_others_nothing(void **state) {
  struct fixture *f = *state;
  tick(f);
  assert_true(f->s.heads_came);
  assert_true(f->s.claims_lost & shard_bit(LEAVING));
  f->s.heads_came = false;
  f->s.look_at_us = INT64_MAX;
  f->s.claims_lost = shard_bit(LEAVING);
  assert_true(leases_lose(&f->leases, (struct shard_lease){.shard = LEAVING, .epoch = EPOCH}, NULL));
  tick(f);
  assert_false(reads(f, 0, LEAVING));
  assert_true(reads(f, 0, STAYING));
  assert_false(f->s.heads_came);
  assert_int_equal(f->s.claims_lost, 0);
  assert_int_equal(f->s.look_at_us, INT64_MAX);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

/* A call that began under a lease that is over, and goes on: its outcome will not be written. The row is met anew under
 * the next lease, and nobody of its order_key waits for the call. */
static void what_is_out_under_a_lease_that_is_over_holds_nothing(void **state) {
  struct fixture *f = *state;
  struct lane *lane = &f->lanes[0];
  tick(f);
  struct flight *flight = fly(f, lane, STAYING, 0), *other = fly(f, lane, LEAVING, 0);
  flight->epoch = other->epoch = EPOCH;
  flight->task->order_key = (struct duebox_bytes){"k", 1};
  flight->in_order = order_enter(&lane->order, flight);
  assert_true(flight->in_order);
  assert_ptr_equal(flight_of(&f->flights, flight->task), flight);
  assert_false(order_may_go(&lane->order, flight->task));
  assert_true(leases_lose(&f->leases, (struct shard_lease){.shard = STAYING, .epoch = EPOCH}, NULL));
  tick(f);
  leases_gain(&f->leases, STAYING, EPOCH + 1, clock_instant(), INT64_C(3600) * SECOND, false);
  tick(f);
  assert_null(flight_of(&f->flights, flight->task));
  assert_ptr_equal(flight_of(&f->flights, other->task), other);
  struct flight *again = flight_take(&f->flights, flight->task);
  assert_non_null(again);
  again->lane = lane;
  assert_true(order_enter(&lane->order, again));
  assert_ptr_equal(flight_of(&f->flights, flight->task), again);
  assert_false(order_leave(&lane->order, flight, ORDER_AGAIN)); /* the call is back, and holds nothing */
  land(f, flight);
  assert_ptr_equal(flight_by_id(&f->flights, again->id), again);
  (void)order_leave(&lane->order, again, ORDER_OVER);
  flight_give_back(&f->flights, again);
  land(f, other);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_slow_lane_stops_no_other_one),
      TEST(what_is_out_for_long_is_slow),
      TEST(the_slowest_stop_first),
      TEST(all_read_it_again_where_it_stays),
      TEST(nobody_reads_where_the_daemon_ends_alone),
      TEST(slow_lanes_stop_first_where_it_ends_beside_others),
      TEST(a_shard_that_goes_costs_the_others_nothing),
      TEST(what_is_out_under_a_lease_that_is_over_holds_nothing),
  };
  return cmocka_run_group_tests_name("scheduler leases", tests, NULL, NULL);
}
