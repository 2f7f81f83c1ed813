/* SPDX-License-Identifier: MIT
 *
 * What polls cost, whatever is in the table: the scheduler on a store that counts what it is asked for.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/scheduler.h"

enum { MS = 1000, SECOND = 1000 * MS, NAMES = 20000, MISSING = 100000 };

/* The store: what is overdue is found in order, and stays until the test settles it. */
struct fake {
  size_t finds, reads, rows_read, most_rows, holds, routes_held, most_routes, next_dues, ranges;
  int64_t from_us, next_us;
  size_t held;        /* groups */
  uint32_t rows_each; /* of an unknown route; 0 = 1 */
  int last_held;      /* x%d */
  bool unlocked;
  uint64_t gone[2]; /* of the routes "a" and "b": settled so far */
};

static struct fake *fake_of(struct store_session *ss) { return (struct fake *)ss; }

static enum store_status next_due(struct store_session *ss, const struct store_range *ranges, size_t count,
                                  int64_t *next_us, int64_t *now_us, struct err *err) {
  struct fake *fake = fake_of(ss);
  fake->next_dues++;
  fake->ranges += count;
  fake->from_us = count ? ranges[0].after.next_us : 0;
  for (size_t i = 0; i < count; i++)
    next_us[i] = i == 0 ? fake->next_us : INT64_MAX;
  *now_us = clock_mono_us();
  return STORE_OK;
}

static enum store_status hold(struct store_session *ss, const struct shard_lease *lease,
                              const struct store_routes *which, uint32_t *moved, struct err *err) {
  struct fake *fake = fake_of(ss);
  uint32_t rows = 0;
  fake->holds++;
  fake->routes_held += which->route_count;
  fake->most_routes = which->route_count > fake->most_routes ? which->route_count : fake->most_routes;
  assert_true(which->limit > 0);
  for (size_t i = 0; i < which->route_count; i++) {
    uint32_t room = which->limit - rows, has = fake->rows_each ? fake->rows_each : 1;
    moved[i] = has < room ? has : room;
    rows += moved[i];
    fake->last_held = moved[i] ? (int)strtol(which->routes[i] + 1, NULL, 10) : fake->last_held;
    assert_true(i == 0 || strcmp(which->routes[i - 1], which->routes[i]) < 0);
  }
  return STORE_OK;
}

/* Ids of route "b" are odd. */
static enum store_status find(struct store_session *ss, const struct store_range *ranges,
                              const struct store_cursor *until, size_t range_count, struct found_id *found,
                              size_t *count, struct err *err) {
  struct fake *fake = fake_of(ss);
  size_t route = ranges->route[0] == 'b';
  fake->finds++;
  *count = 0;
  for (uint64_t i = fake->gone[route]; i < MISSING && *count < ranges->limit; i++)
    found[(*count)++] = (struct found_id){.id = 2 * i + 2 + route, .next_us = (int64_t)i + 1};
  return STORE_OK;
}

static void free_batch(struct task_batch *batch) {
  free(batch->tasks);
  free(batch);
}

static enum store_status read_ids(struct store_session *ss, enum task_state state, uint64_t shards, const char *host,
                                  const uint64_t *ids, size_t count, int64_t ahead_us, struct store_limit limit,
                                  struct task_batch **out, struct err *err) {
  struct fake *fake = fake_of(ss);
  struct task_batch *batch = calloc(1, sizeof *batch);
  assert_non_null(batch);
  batch->tasks = calloc(count, sizeof *batch->tasks);
  assert_non_null(batch->tasks);
  batch->count = count;
  batch->release = free_batch;
  atomic_init(&batch->open, (unsigned)count);
  for (size_t i = 0; i < count; i++)
    batch->tasks[i] = (struct task){
        .id = ids[i], .state = state, .route = {ids[i] % 2 ? "b" : "a", 1}, .message_id = {"m", 1}, .batch = batch};
  fake->reads++;
  fake->rows_read += count;
  fake->most_rows = count > fake->most_rows ? count : fake->most_rows;
  *out = batch;
  return STORE_OK;
}

struct fixture {
  struct fake fake;
  struct store store;
  struct leases leases;
  struct engine_metrics metrics;
  struct mailbox settler;
  struct flight_table flights;
  struct route_config routes[2];
  struct config config;
  struct config_ref ref;
  struct scheduler s;
};

static const struct store_ops ops = {.next_due = next_due, .hold = hold, .find = find, .read_ids = read_ids};

static void make_lane(struct fixture *f, const char *name) {
  struct lane *lane = calloc(1, sizeof *lane);
  assert_non_null(lane);
  snprintf(lane->name, sizeof lane->name, "%s", name);
  lane->route = config_route(&f->config, name, strlen(name));
  lane->next = f->s.lanes;
  f->s.lanes = lane;
  HASH_ADD_KEYPTR(hh, f->s.by_name, lane->name, strlen(lane->name), lane);
}

static int setup(void **state) {
  struct fixture *f = calloc(1, sizeof *f);
  assert_non_null(f);
  f->store = (struct store){.ops = &ops};
  f->routes[0].name = "a";
  f->routes[1].name = "b";
  f->config = (struct config){.routes = f->routes, .route_count = 2};
  f->ref.config = &f->config;
  atomic_init(&f->ref.users, 1000000);
  mailbox_init(&f->settler);
  struct scheduler *s = &f->s;
  s->store = &f->store;
  s->ss = (struct store_session *)&f->fake;
  s->leases = &f->leases;
  s->metrics = &f->metrics;
  s->settler = &f->settler;
  s->flights = &f->flights;
  s->config = &f->ref;
  s->instance = "me";
  mutex_init(&s->lanes_lock);
  for (int i = 0; i < 8; i++)
    s->view[i].epoch = 1;
  make_lane(f, "b");
  make_lane(f, "a");
  f->fake.next_us = INT64_MAX;
  *state = f;
  return 0;
}

static int teardown(void **state) {
  struct fixture *f = *state;
  struct flight_list left = {0};
  struct flight *flight;
  mailbox_take(&f->settler, 0, &left);
  while ((flight = flight_list_pop(&left)))
    flight_give_back(f->s.flights, flight);
  flight_table_free(&f->flights);
  mailbox_destroy(&f->settler);
  HASH_CLEAR(hh, f->s.by_name);
  while (f->s.lanes) {
    struct lane *lane = f->s.lanes;
    f->s.lanes = lane->next;
    while (lane->groups) {
      struct group *group = lane->groups;
      lane->groups = group->next;
      free(group);
    }
    free(lane);
  }
  free(f->s.overdue);
  free(f->s.unknown);
  free(f);
  return 0;
}

static void fill_unknown(struct store_group *groups, size_t count, size_t first) {
  for (size_t i = 0; i < count; i++) { /* as the index has them: by shard */
    groups[i] = (struct store_group){.state = TASK_SCHEDULED, .shard = (uint8_t)(i * 8 / count), .priority = 5};
    snprintf(groups[i].route, sizeof groups[i].route, "x%05zu", i + first);
    groups[i].next_us = i % 2 ? INT64_MAX : 1; /* not due, half of them: each would cost every poll a seek */
  }
}

/* An application may write any number of routes that nobody knows: their rows are set aside by few units, however many
 * names there are and whichever was met first, bit by bit between the polls, so that the known routes do not wait
 * behind them. The first hundred names used to take a unit each, and there was one for each poll: one in eight seconds,
 * while 20,000 names made the polls dear. */
static void rows_of_many_unknown_routes_are_held_in_few_units(void **state) {
  struct fixture *f = *state;
  struct scheduler *s = &f->s;
  struct store_group *groups = calloc(NAMES, sizeof *groups);
  assert_non_null(groups);
  fill_unknown(groups, NAMES, 0);
  scheduler_note_unknown(s, groups, NAMES, SECOND);
  size_t units = 0;
  for (; scheduler_holds_at(s) != INT64_MAX; units++) {
    s->hold_at_us = 0; /* it has rested */
    int64_t began = clock_mono_us();
    scheduler_hold(s);
    int64_t ended = clock_mono_us();
    assert_in_range(s->hold_at_us - ended, 0, 100 * (ended - began)); /* and rests in proportion again */
    fill_unknown(groups, 10, 7); /* a poll meanwhile, of what came since: not before the others */
    scheduler_note_unknown(s, groups, scheduler_holds_at(s) != INT64_MAX ? 10 : 0, SECOND);
  }
  assert_int_equal(f->fake.routes_held, NAMES);
  assert_in_range(units, 1, 100);
  assert_in_range(f->fake.most_routes, 1, 250);
  scheduler_hold(s);
  assert_int_equal(f->fake.holds, units);
  /* Few, of which those that are due are held; those whose rows had no room in the unit come next. */
  fill_unknown(groups, 8, 0);
  for (size_t i = 0; i < 8; i++)
    groups[i].shard = 0;
  f->fake.rows_each = 100;
  scheduler_note_unknown(s, groups, 8, SECOND);
  const int last[] = {4, 6};
  for (int i = 0; i < 2; i++, s->hold_at_us = 0) {
    s->hold_at_us = 0;
    scheduler_hold(s);
    assert_int_equal(f->fake.last_held, last[i]);
  }
  assert_true(scheduler_holds_at(s) == INT64_MAX);
  free(groups);
}

/* What became known meanwhile, or is out still, stays; so does what is in a shard that is no longer ours. */
static void what_is_known_by_then_is_not_held(void **state) {
  struct fixture *f = *state;
  struct scheduler *s = &f->s;
  struct store_group groups[4];
  fill_unknown(groups, 4, 0);
  for (size_t i = 0; i < 4; i++)
    groups[i].next_us = 1;
  groups[3].shard = SHARD_BOUND; /* another host may know it */
  scheduler_note_unknown(s, groups, 4, SECOND);
  assert_int_equal(s->unknown_count, 3);
  f->routes[1].name = groups[0].route;
  lane_group(scheduler_lane_make(s, groups[1].route), groups[1].shard, 5, true)->in_flight = 1;
  s->view[groups[2].shard].epoch = 0;
  while (scheduler_holds_at(s) != INT64_MAX) {
    s->hold_at_us = 0;
    scheduler_hold(s);
  }
  assert_int_equal(f->fake.holds, 0);
}

/* While a long transaction pins the purge, a poll of every group walks over all that was deleted. Between two of these
 * the known routes are polled from a short time ago on, with whatever groups they have had, so that a new row is found
 * as soon as ever. */
static void known_routes_are_polled_from_a_short_time_ago(void **state) {
  struct fixture *f = *state;
  struct scheduler *s = &f->s;
  const struct shard_lease leases[] = {{.shard = 0, .epoch = 1}, {.shard = 1, .epoch = 1}};
  struct lane *first = s->lanes;
  atomic_store(&s->db_offset_us, 0);
  assert_true(scheduler_poll_known(s, leases, 2));
  assert_int_equal(f->fake.next_dues, 1);
  assert_int_equal(f->fake.ranges, 4); /* two routes, two shards, the priority that rows have by default */
  assert_in_range(clock_mono_us() - f->fake.from_us, 9 * SECOND, 100 * SECOND);
  assert_null(lane_group(first, 0, 5, false));
  (void)lane_group(first, 1, 9, true); /* a priority it has had is asked for in every shard */
  int64_t due = f->fake.next_us = scheduler_db_now_us(s) + SECOND;
  assert_true(scheduler_poll_known(s, leases, 2));
  assert_int_equal(f->fake.ranges, 4 + 6);
  struct group *group = lane_group(first, 0, 5, false);
  assert_non_null(group);
  assert_true(group->next_us == due && !group->due);
  /* Reading begins there too, but for rows that are known to be older. */
  struct store_cursor none = {0};
  int64_t from = scheduler_read_from(s, group, none).next_us;
  assert_in_range(scheduler_db_now_us(s) - from, 9 * SECOND, 100 * SECOND);
  group->low_us = 77;
  assert_true(scheduler_read_from(s, group, none).next_us == 76);
  group->low_us = 0;
  assert_true(scheduler_read_from(s, group, none).next_us == 0);
  struct store_cursor after = {.next_us = scheduler_db_now_us(s), .id = 5};
  assert_true(scheduler_read_from(s, group, after).id == 5);
}

/* What a busy group has from before is not forgotten: a row that is not settled yet, or was handed back. */
static void a_poll_of_known_groups_forgets_no_older_row(void **state) {
  struct fixture *f = *state;
  struct scheduler *s = &f->s;
  const struct shard_lease lease = {.shard = 0, .epoch = 1};
  struct group *group = lane_group(s->lanes, 0, 5, true);
  group->epoch = 1;
  group->low_us = 1000;
  group->in_flight = 1;
  f->fake.next_us = scheduler_db_now_us(s);
  assert_true(scheduler_poll_known(s, &lease, 1));
  assert_int_equal(group->low_us, 1000);
  group->in_flight = 0;
  group->due = false;
  f->fake.next_us = INT64_MAX;
  assert_true(scheduler_poll_known(s, &lease, 1));
  assert_true(group->low_us == f->fake.from_us);
}

static enum store_status unblock(struct store_session *ss, const struct shard_lease *lease, const char *host,
                                 const struct store_unblock *what, struct store_walk *walk, uint32_t *moved, bool *all,
                                 struct err *err) {
  *moved = 3;
  *all = walk->end = true;
  return STORE_OK;
}

/* All that a group had was blocked for longer than such a poll goes back, and comes back: the poll finds a younger one,
 * and reading begins with the old ones (P5). They used to be overtaken, on a busy machine. */
static void rows_that_came_back_are_read_however_old(void **state) {
  static const struct store_ops blocked_ops = {.next_due = next_due, .unblock = unblock};
  struct fixture *f = *state;
  struct scheduler *s = &f->s;
  const struct shard_lease lease = {.shard = 0, .epoch = 1};
  struct store_cursor none = {0};
  f->store.ops = &blocked_ops;
  s->lanes->blocked = shard_bit(0);
  s->view[0].epoch = 1;
  scheduler_unblock(s);
  lane_forget_groups(s->lanes, s->look);
  f->fake.next_us = scheduler_db_now_us(s) - SECOND;
  for (int i = 0; i < 2; i++) {
    assert_true(scheduler_poll_known(s, &lease, 1));
    assert_int_equal(scheduler_read_from(s, lane_group(s->lanes, 0, 5, false), none).next_us, 0);
  }
  scheduler_return_seen(s, NULL, 0, &lease, 1); /* a poll of every group has seen them, or that there are none */
  assert_true(scheduler_poll_known(s, &lease, 1));
  assert_int_equal(s->lanes->old_shards, 0);
}

static enum store_status look_for_held(struct store_session *ss, const struct store_look *what,
                                       const struct store_group **groups, size_t *count, int64_t *now_us,
                                       struct err *err) {
  static struct store_group held;
  held = (struct store_group){.state = TASK_HELD, .route = "a", .priority = 5};
  *groups = &held;
  *count = fake_of(ss)->held;
  *now_us = clock_mono_us();
  return STORE_OK;
}

static enum store_status unhold(struct store_session *ss, const struct shard_lease *lease, const char *route,
                                uint32_t limit, uint32_t *moved, bool *all, struct err *err) {
  *moved = 3;
  *all = fake_of(ss)->unlocked;
  fake_of(ss)->held = !*all;
  return STORE_OK;
}

static enum store_status unhold_slowly(struct store_session *ss, const struct shard_lease *lease, const char *route,
                                       uint32_t limit, uint32_t *moved, bool *all, struct err *err) {
  fake_of(ss)->holds++;
  thread_sleep(60 * MS);
  *moved = 1;
  *all = false;
  return STORE_OK;
}

/* Rows of megabytes come back one at a time, and each takes long. All routes wait meanwhile, and none while it rests.
 */
static void bringing_held_rows_back_rests_in_proportion_to_its_time(void **state) {
  static const struct store_ops held_ops = {.look = look_for_held, .unhold = unhold_slowly};
  struct fixture *f = *state;
  struct scheduler *s = &f->s;
  const struct shard_lease lease = {.shard = 0, .epoch = 1};
  f->store.ops = &held_ops;
  f->fake.held = 1;
  for (int i = 0; i < 3; i++) {
    s->held_at_us = 0;
    int64_t began = clock_mono_us();
    scheduler_held(s, &lease, 1);
    int64_t ended = clock_mono_us();
    assert_true(s->held_at_us - began >= 5 * 60 * MS);
    assert_true(s->held_at_us - ended <= 5 * SECOND);
    assert_true(s->held_more);
    scheduler_held(s, &lease, 1);
    assert_int_equal(f->fake.holds, i + 1);
  }
}

/* A route comes back, and rows of an order_key that were held: nobody of its key leaves before these are scheduled
 * again (P5). Tasks that were inserted around a reload used to overtake them. */
static void nobody_goes_before_held_rows_are_back(void **state) {
  static const struct store_ops held_ops = {.look = look_for_held, .unhold = unhold};
  struct fixture *f = *state;
  struct scheduler *s = &f->s;
  struct lane *lane = s->lanes;
  struct shard_lease leases[8];
  const struct task task = {.id = 9, .route = {"a", 1}, .order_key = {"k", 1}};
  for (uint8_t i = 0; i < 8; i++)
    leases[i] = (struct shard_lease){.shard = i, .epoch = 1};
  f->store.ops = &held_ops;
  f->fake.held = 1;
  scheduler_close(lane, UINT64_MAX);
  for (int poll = 0; poll < 3; poll++) {
    f->fake.unlocked = poll > 0; /* another transaction has one of them until then */
    s->held_at_us = 0;
    scheduler_return_begin(s);
    scheduler_return_seen(s, NULL, 0, leases, 8);
    scheduler_held(s, leases, 8);
    scheduler_return_end(s);
    assert_int_equal(order_may_go(&lane->order, &task), poll == 2); /* it has seen their priorities */
  }
}

static enum store_status look_for_unknown(struct store_session *ss, const struct store_look *what,
                                          const struct store_group **groups, size_t *count, int64_t *now_us,
                                          struct err *err) {
  static struct store_group held[NAMES];
  *count = fake_of(ss)->held < what->limit ? fake_of(ss)->held : what->limit;
  for (size_t i = 0; i < *count; i++) {
    held[i] = (struct store_group){.state = TASK_HELD, .shard = 3, .priority = 5};
    snprintf(held[i].route, sizeof held[i].route, "x%05zu", i);
  }
  *groups = held;
  return STORE_OK;
}

static void look_for_held_rows(struct scheduler *s, int times) {
  const struct shard_lease lease = {.shard = 3, .epoch = 1};
  for (int i = 0; i < times; i++) {
    s->held_at_us = 0;
    scheduler_held(s, &lease, 1);
    scheduler_forget_routes(s, false);
  }
}

/* What an alert on unknown routes asks for is over with their rows: it used to last until the daemon was restarted. */
static void an_unknown_route_is_shown_while_it_has_rows(void **state) {
  static const struct store_ops held_ops = {.look = look_for_unknown};
  struct fixture *f = *state;
  struct scheduler *s = &f->s;
  struct store_group later = {.state = TASK_SCHEDULED, .shard = 3, .priority = 5, .next_us = INT64_MAX - 1};
  f->store.ops = &held_ops;
  f->fake.held = 2;
  look_for_held_rows(s, 10);
  struct lane *first = scheduler_lane(s, "x00000"), *second = scheduler_lane(s, "x00001");
  assert_true(first && !first->forgotten && second && !second->forgotten);
  f->fake.held = 1;
  look_for_held_rows(s, 1); /* which may have been too early */
  assert_false(second->forgotten);
  look_for_held_rows(s, 2);
  assert_true(second->forgotten);
  assert_false(first->forgotten);
  f->fake.held = 100; /* and perhaps more: who is not among these may have some */
  look_for_held_rows(s, 10);
  assert_false(second->forgotten);
  strcpy(later.route, "x00000");
  f->fake.held = 0;
  for (int i = 0; i < 10; i++) {
    scheduler_note_unknown(s, &later, 1, SECOND);
    look_for_held_rows(s, 1);
  }
  assert_true(second->forgotten);
  assert_false(first->forgotten);
  first->in_flight = 1; /* whatever became of the row */
  look_for_held_rows(s, 10);
  assert_false(first->forgotten);
  first->in_flight = 0;
  scheduler_forget_routes(s, true);
  assert_true(first->forgotten && !scheduler_lane(s, "a")->forgotten);
}

/* Beyond a hundred names one lane is all of them, and over with the last of their rows. */
static void the_lane_of_other_unknown_routes_is_forgotten_too(void **state) {
  static const struct store_ops held_ops = {.look = look_for_unknown};
  struct fixture *f = *state;
  struct scheduler *s = &f->s;
  f->store.ops = &held_ops;
  f->fake.held = 100;
  look_for_held_rows(s, 1);
  struct lane *lane = scheduler_lane_make(s, "one more");
  assert_ptr_equal(lane, s->strangers);
  look_for_held_rows(s, 10); /* others hide what there is of it */
  assert_false(s->strangers->forgotten);
  f->fake.held = 0;
  look_for_held_rows(s, 3);
  assert_true(s->strangers->forgotten);
}

/* After an outage of a consumer, results are missing by the hundred thousand: they are ended bounded, per turn and per
 * route, and the routes take turns. */
static void missing_results_of_one_route_leave_room_for_others(void **state) {
  struct fixture *f = *state;
  struct scheduler *s = &f->s;
  s->overdue = calloc(3, sizeof *s->overdue);
  assert_non_null(s->overdue);
  s->overdue_count = 3;
  for (size_t i = 0; i < 3; i++)
    s->overdue[i] = (struct store_group){.state = TASK_AWAITING, .shard = (uint8_t)i, .priority = 5, .next_us = 1};
  strcpy(s->overdue[0].route, "a");
  strcpy(s->overdue[1].route, "a");
  strcpy(s->overdue[2].route, "b");
  for (int turn = 0; turn < 100; turn++) {
    size_t before = f->fake.reads;
    s->overdue_at_us = 0; /* it has rested */
    scheduler_overdue(s);
    assert_in_range(f->fake.reads - before, 0, 3);
    assert_true(s->overdue_at_us > 0);
  }
  assert_in_range(f->fake.most_rows, 1, 100);
  struct lane *a = scheduler_lane(s, "a"), *b = scheduler_lane(s, "b");
  assert_int_equal(a->unread, 500);
  assert_int_equal(b->unread, 500);
  assert_int_equal(f->fake.rows_read, 1000);
  /* Nothing more is even looked for until some are settled. */
  size_t finds = f->fake.finds;
  s->overdue_at_us = 0;
  scheduler_overdue(s);
  assert_int_equal(f->fake.finds, finds);
  struct flight_list settled = {0};
  mailbox_take(&f->settler, 0, &settled);
  f->fake.gone[0] = f->fake.gone[1] = 500;
  for (struct flight *flight = settled.head; flight; flight = flight->next)
    flight->settled = flight->decision.applied = true;
  scheduler_arrivals(s, &settled);
  assert_int_equal(a->unread + b->unread, 0);
  for (int turn = 0; turn < 3; turn++) {
    s->overdue_at_us = 0;
    scheduler_overdue(s);
  }
  assert_true(a->unread > 0 && b->unread > 0);
}

static void they_rest_in_proportion_to_their_time(void **state) {
  struct fixture *f = *state;
  struct scheduler *s = &f->s;
  s->overdue = calloc(1, sizeof *s->overdue);
  assert_non_null(s->overdue);
  s->overdue_count = 1;
  s->overdue[0] = (struct store_group){.state = TASK_AWAITING, .priority = 5, .route = "a", .next_us = 1};
  s->overdue_at_us = INT64_MAX;
  scheduler_overdue(s);
  assert_int_equal(f->fake.finds, 0);
}

int main(void) {
  log_set_level(LOG_LEVEL_ERROR);
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(rows_of_many_unknown_routes_are_held_in_few_units),
      TEST(an_unknown_route_is_shown_while_it_has_rows),
      TEST(the_lane_of_other_unknown_routes_is_forgotten_too),
      TEST(what_is_known_by_then_is_not_held),
      TEST(known_routes_are_polled_from_a_short_time_ago),
      TEST(a_poll_of_known_groups_forgets_no_older_row),
      TEST(rows_that_came_back_are_read_however_old),
      TEST(bringing_held_rows_back_rests_in_proportion_to_its_time),
      TEST(nobody_goes_before_held_rows_are_back),
      TEST(missing_results_of_one_route_leave_room_for_others),
      TEST(they_rest_in_proportion_to_their_time),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
