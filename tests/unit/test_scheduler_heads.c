/* SPDX-License-Identifier: MIT
 *
 * What the heads of order keys, and what they have blocked, cost those that have nothing to do with them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/sync.h"
#include "core/scheduler.h"

enum { MS = 1000, SECOND = 1000 * MS, SHARDS = 8 };

/* The store. */
struct fake {
  size_t reads;
  uint64_t head; /* of an order_key of route "b"; 0 = none */
  bool locked;   /* the blocked rows, by somebody else; */
  bool stuck;    /* or the table of heads */
};

static struct fake *fake_of(struct store_session *ss) { return (struct fake *)ss; }

struct fixture {
  struct fake fake;
  struct store store;
  struct plugin_config plugin;
  struct route_config routes[3];
  struct config config, next;
  struct config_ref ref, next_ref;
  struct scheduler s;
};

static struct driver *no_driver(void *engine, const struct plugin_config *plugin) { return NULL; }

static struct config_ref ref_to(struct config *config) { return (struct config_ref){.users = 1000, .config = config}; }

/* A scheduler that knows the routes a and b, and what there is of them in the table. The next configuration has c too.
 */
static int setup(void **state) {
  static const struct duebox_option none[] = {{0}};
  static const struct duebox_plugin module = {.route_options = none};
  struct fixture *f = calloc(1, sizeof *f);
  assert_non_null(f);
  f->plugin = (struct plugin_config){.name = "p", .module = &module};
  f->routes[0] = (struct route_config){.name = "a", .plugin = &f->plugin};
  f->routes[1] = (struct route_config){.name = "b", .plugin = &f->plugin};
  f->routes[2] = (struct route_config){.name = "c", .plugin = &f->plugin};
  f->config = (struct config){.routes = f->routes, .route_count = 2};
  f->next = (struct config){.routes = f->routes, .route_count = 3};
  f->ref = ref_to(&f->config);
  f->next_ref = ref_to(&f->next);
  struct scheduler *s = &f->s;
  s->store = &f->store;
  s->ss = (struct store_session *)&f->fake;
  s->config = &f->ref;
  s->instance = "me";
  s->driver_for = no_driver;
  mutex_init(&s->lanes_lock);
  mutex_init(&s->ask_lock);
  cond_init(&s->answered);
  mailbox_init(&s->in);
  for (int i = 0; i < SHARDS; i++)
    s->view[i].epoch = 1;
  for (size_t i = 0; i < f->config.route_count; i++) {
    struct lane *lane = scheduler_lane_make(s, f->routes[i].name);
    assert_non_null(lane);
    lane->order.closed_shards = 0;
    lane->heads_unknown = false;
  }
  *state = f;
  return 0;
}

static int teardown(void **state) {
  struct fixture *f = *state;
  scheduler_free(&f->s);
  mailbox_destroy(&f->s.in);
  free(f);
  return 0;
}

static enum store_status heads(struct store_session *ss, struct store_heads_part *part, store_head_fn *each, void *ctx,
                               struct err *err) {
  if (fake_of(ss)->head)
    each(ctx, &(struct store_head){.id = fake_of(ss)->head, .route = "b", .order_key = {"k", 1}});
  return STORE_OK;
}

/* A task that has moved is sent by another daemon, and the next of its order_key may move when that is over: it is
 * noticed soon where one was lately, or each of a hundred would wait for a second. One that fails for hours is asked
 * for seldom. */
static void heads_that_are_over_elsewhere_are_soon_noticed(void **state) {
  static const struct store_ops heads_ops = {.heads = heads};
  struct fixture *f = *state;
  struct scheduler *s = &f->s;
  f->store.ops = &heads_ops;
  f->fake.head = 9;
  s->heads_stale = true;
  for (int i = 0; i < 10; i++, s->heads_at_us = 0)
    assert_true(scheduler_heads(s));
  assert_int_equal(s->heads_rest_us, SECOND);
  f->fake.head = 10; /* the first one is over, and the next is there by now */
  assert_true(scheduler_heads(s));
  assert_in_range(s->heads_rest_us, 1, SECOND / 10);
  assert_true(s->look_soon);
  s->heads_at_us = 0;
  assert_true(scheduler_heads(s));
  assert_in_range(s->heads_rest_us, 1, SECOND / 5);
}

static enum store_status held_heads(struct store_session *ss, struct store_heads_part *part, store_head_fn *each,
                                    void *ctx, struct err *err) {
  return fake_of(ss)->reads++ == 0 ? STORE_BUSY : heads(ss, part, each, ctx, err);
}

/* Somebody locks the table of heads while a shard comes: tasks with an order_key wait until it can be read, and no
 * others do. (Nothing at all was read, of any route, for as long as the table was held.) */
static void a_table_of_heads_that_is_held_keeps_only_keys_waiting(void **state) {
  static const struct store_ops heads_ops = {.heads = held_heads};
  const struct task keyed = {.id = 7, .shard = 1, .order_key = {"k", 1}}, other = {.id = 8, .shard = 1},
                    head = {.id = 9, .shard = 1, .order_key = {"k", 1}};
  struct fixture *f = *state;
  struct scheduler *s = &f->s;
  struct lane *lane = scheduler_lane(s, "b");
  f->store.ops = &heads_ops;
  f->fake.head = 9;
  s->heads_stale = true;
  assert_true(scheduler_heads(s));
  assert_int_equal(s->retry_wait_us, 0); /* no trouble of the database */
  assert_true(order_may_go(&lane->order, &other));
  assert_false(order_may_go(&lane->order, &keyed));
  s->heads_at_us = 0; /* the table is free again */
  assert_true(scheduler_heads(s));
  assert_false(lane->heads_unknown);
  assert_true(order_may_go(&lane->order, &head));
  assert_false(order_may_go(&lane->order, &keyed));
}

enum { MANY_HEADS = 1200 };
/* The heads 1 to 1200, but for fake.head, each of a key of its own; a part of them where one is asked for. */
static enum store_status many_heads(struct store_session *ss, struct store_heads_part *part, store_head_fn *each,
                                    void *ctx, struct err *err) {
  unsigned from = part && part->more ? (unsigned)strtoul(part->order_key, NULL, 10) : 0;
  unsigned to = part ? from + part->keys : MANY_HEADS;
  fake_of(ss)->reads++;
  for (unsigned i = from + 1; i <= MANY_HEADS && i <= to; i++) {
    char key[8];
    struct store_head head = {.id = i, .route = "b", .order_key = {key, (size_t)snprintf(key, sizeof key, "%u", i)}};
    if (i != fake_of(ss)->head)
      each(ctx, &head);
  }
  if (part && (part->more = to < MANY_HEADS))
    snprintf(part->order_key, sizeof part->order_key, "%u", to);
  return STORE_OK;
}

/* Nothing is sent while heads are read. Those that are not in the table are over after the last part, and no others. */
static void many_heads_are_read_in_parts(void **state) {
  static const struct store_ops heads_ops = {.heads = many_heads};
  struct fixture *f = *state;
  struct scheduler *s = &f->s;
  struct lane *lane = scheduler_lane(s, "b");
  f->store.ops = &heads_ops;
  s->heads_stale = true; /* all of them, before anything is sent */
  assert_true(scheduler_heads(s));
  assert_int_equal(f->fake.reads, 1);
  f->fake.head = 3;
  for (int part = 0; part < 3; part++) {
    assert_int_equal(lane->order.heads, MANY_HEADS);
    s->heads_at_us = 0;
    assert_true(scheduler_heads(s));
  }
  assert_int_equal(f->fake.reads, 4);
  assert_int_equal(lane->order.heads, MANY_HEADS - 1);
}

/* A reload leaves what is known of heads as it is; those of a route that is new are read in parts, and nobody but its
 * own keys waits for that. (All heads were read at once, whatever the reload was about: with 100,000 of them all routes
 * stood still for seconds.) */
static void a_reload_keeps_nobody_waiting_for_heads(void **state) {
  static const struct store_ops heads_ops = {.heads = many_heads};
  const struct task task = {.order_key = {"k", 1}};
  struct fixture *f = *state;
  struct scheduler *s = &f->s;
  struct shard_lease leases[SHARDS];
  f->store.ops = &heads_ops;
  s->heads_stale = true;
  assert_true(scheduler_heads(s));
  scheduler_reload(s, &f->next_ref);
  scheduler_configure(s);
  struct lane *known = scheduler_lane(s, "b"), *new = scheduler_lane(s, "c");
  assert_false(s->heads_stale);
  assert_true(order_may_go(&known->order, &task));
  for (int i = 0; i < SHARDS; i++)
    leases[i] = (struct shard_lease){.shard = (uint8_t)i, .epoch = 1};
  new->held_shards = 0;
  for (int part = 0; part < 3; part++) {
    assert_int_equal(known->order.heads, MANY_HEADS);
    assert_int_equal(f->fake.reads, 1 + part);
    assert_false(order_may_go(&new->order, &task));
    s->heads_at_us = 0;
    assert_true(scheduler_heads(s));
    scheduler_return_begin(s);
    scheduler_return_seen(s, NULL, 0, leases, SHARDS);
    scheduler_return_end(s);
  }
  assert_int_equal(known->order.heads, MANY_HEADS);
  assert_true(order_may_go(&new->order, &task));
}

/* A shard comes, and the table has many heads: its own keys wait until all are read, and nobody else does. (They were
 * read at once: with 100,000 of them all routes stood still for five seconds when a daemon joined another.) */
static void a_shard_that_comes_keeps_nobody_waiting_for_heads(void **state) {
  static const struct store_ops heads_ops = {.heads = many_heads};
  const struct task came = {.shard = 1, .order_key = {"k", 1}}, ours = {.shard = 2, .order_key = {"l", 1}};
  struct fixture *f = *state;
  struct scheduler *s = &f->s;
  struct shard_lease leases[SHARDS];
  struct lane *lane = scheduler_lane(s, "b");
  f->store.ops = &heads_ops;
  for (int i = 0; i < SHARDS; i++)
    leases[i] = (struct shard_lease){.shard = (uint8_t)i, .epoch = 1};
  scheduler_close(lane, shard_bit(1));
  lane->held_shards = 0;
  s->heads_came = true;
  s->heads_at_us = INT64_MAX;
  for (size_t part = 0; part < 3; part++) {
    assert_false(order_may_go(&lane->order, &came));
    assert_true(order_may_go(&lane->order, &ours));
    scheduler_return_begin(s);
    assert_true(scheduler_heads(s));
    scheduler_return_seen(s, NULL, 0, leases, SHARDS);
    scheduler_return_end(s);
    assert_int_equal(f->fake.reads, part + 1);
    assert_int_equal(lane->order.heads, part == 2 ? MANY_HEADS : 500 * (part + 1));
    assert_true((scheduler_heads_awaited_at(s) == INT64_MAX) == (part == 2));
    s->heads_at_us = 0;
  }
  assert_true(order_may_go(&lane->order, &came));
}

/* A table of blocked rows of route "b" in shard 3: none of them has a head any more. */
enum { BLOCKED_ROWS = 2000, STEP_US = 2 * MS };

static enum store_status unblock_some(struct store_session *ss, const struct shard_lease *lease, const char *host,
                                      const struct store_unblock *what, struct store_walk *walk, uint32_t *moved,
                                      bool *all, struct err *err) {
  struct fake *fake = fake_of(ss);
  uint64_t left = BLOCKED_ROWS - walk->after.id;
  assert_int_equal(lease->shard, 3);
  fake->reads++;
  thread_sleep(STEP_US);
  *moved = fake->locked ? 0 : 1;
  *all = !fake->locked;
  if (fake->stuck)
    return STORE_OK;
  *walk = (struct store_walk){.priority = 5,
                              .after = {1, walk->after.id + (left < what->limit ? left : what->limit)},
                              .end = left < what->limit};
  return STORE_OK;
}

static struct lane *blocked_lane(struct fixture *f) {
  static const struct store_ops unblock_ops = {.unblock = unblock_some};
  const struct store_group found = {.state = TASK_BLOCKED, .shard = 3, .priority = 5, .route = "b"};
  const struct shard_lease lease = {.shard = 3, .epoch = 1};
  f->store.ops = &unblock_ops;
  f->s.view[3].epoch = 1;
  f->s.look++;
  scheduler_return_seen(&f->s, &found, 1, &lease, 1);
  return scheduler_lane(&f->s, "b");
}

/* All routes wait for a step of a walk over blocked rows: it is short, goes on where the last one ended, and has its
 * share of the time. What waits for the walk goes on at its end. */
static void blocked_rows_come_back_by_a_walk_of_short_steps(void **state) {
  struct fixture *f = *state;
  struct scheduler *s = &f->s;
  struct lane *lane = blocked_lane(f);
  int64_t began_us = clock_mono_us();
  lane->returning = true;
  for (size_t before = f->fake.reads; !(lane->returned & shard_bit(3)); before = f->fake.reads) {
    scheduler_unblock(s);
    assert_in_range(f->fake.reads - before, 0, 3);
    assert_true(lane->returned & shard_bit(3) || s->unblock_at_us < clock_mono_us() + 500 * MS);
  }
  assert_int_equal(f->fake.reads, BLOCKED_ROWS / 250 + 1);
  assert_true(s->unblock_paid_us - began_us >= (BLOCKED_ROWS / 250 + 1) * 4 * STEP_US);
  assert_true(lane->old_shards & lane->unseen & shard_bit(3));
}

/* Rows that somebody has locked are left behind, and what waits for them goes on waiting; nobody tries again at once.
 */
static void a_walk_that_left_rows_behind_is_done_anew_by_the_next_look(void **state) {
  struct fixture *f = *state;
  struct scheduler *s = &f->s;
  struct lane *lane = blocked_lane(f);
  lane->returning = true;
  f->fake.locked = true;
  for (int i = 0; i < 100; i++)
    scheduler_unblock(s);
  assert_int_equal(f->fake.reads, BLOCKED_ROWS / 250 + 1);
  assert_false(lane->returned & shard_bit(3));
  f->fake.stuck = true; /* nothing could even be found */
  (void)blocked_lane(f);
  for (int i = 0; i < 100; i++)
    scheduler_unblock(s);
  assert_int_equal(f->fake.reads, BLOCKED_ROWS / 250 + 2);
  f->fake.locked = f->fake.stuck = false;
  (void)blocked_lane(f);
  while (!(lane->returned & shard_bit(3)))
    scheduler_unblock(s);
}

/* A shard that was lost and came back meanwhile, and a head that is over since: the walk begins anew. */
static void a_walk_that_may_have_passed_by_is_not_what_keys_wait_for(void **state) {
  struct fixture *f = *state;
  struct scheduler *s = &f->s;
  struct lane *lane = blocked_lane(f);
  lane->to_unblock = shard_bit(3);
  scheduler_unblock(s);
  assert_true(lane->walk.on && lane->walk.at.after.id > 0);
  scheduler_close(lane, shard_bit(3));
  scheduler_return_begin(s);
  assert_true(lane->returning);
  assert_false(lane->walk.on);
  scheduler_unblock(s);
  assert_true(lane->walk.on && lane->walk.for_return);
  s->view[3].epoch = 2;
  f->fake.reads = 0;
  while (!(lane->returned & shard_bit(3)))
    scheduler_unblock(s);
  assert_int_equal(f->fake.reads, BLOCKED_ROWS / 250 + 1);
}

/* Whoever waits behind a task that is tried again soon does so in memory, and nothing is looked for when that is over;
 * behind one that fails for long, or again and again, in the table. */
static void behind_a_task_that_is_tried_again_soon_nobody_is_blocked(void **state) {
  static const struct {
    enum task_event event;
    int64_t delay_us;
    uint32_t failures;
    enum flight_end end;
    uint8_t shard;
    bool blocked;
  } rows[] = {
      {EVENT_RETRY, 100 * MS, 1, FLIGHT_OUTCOME, 3, false},
      {EVENT_RETRY, SECOND, 8, FLIGHT_OUTCOME, 3, false},
      {EVENT_RETRY, SECOND + 1, 1, FLIGHT_OUTCOME, 3, true},
      {EVENT_RETRY, 100 * MS, 9, FLIGHT_OUTCOME, 3, true},
      {EVENT_DEFER, 100 * MS, 1, FLIGHT_OUTCOME, 3, true},
      {EVENT_RETRY, 0, 0, FLIGHT_MOVES, 3, true},
      {EVENT_RETRY, 100 * MS, 1, FLIGHT_OUTCOME, SHARD_BOUND, true},
  };
  struct fixture *f = *state;
  struct scheduler *s = &f->s;
  struct lane *lane = scheduler_lane(s, "b");
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const struct task head = {.id = 1, .shard = rows[i].shard, .order_key = {"k", 1}},
                      next = {.id = 2, .shard = rows[i].shard, .order_key = {"k", 1}};
    struct flight flight = {
        .id = 1, .task = (struct task *)(uintptr_t)&head, .lane = lane, .end = rows[i].end, .settled = true};
    flight.decision = (struct decision){.applied = true,
                                        .head = true,
                                        .event = rows[i].event,
                                        .delay_us = rows[i].delay_us,
                                        .failures = rows[i].failures};
    assert_true(order_enter(&lane->order, &flight));
    scheduler_leave_order(s, &flight, false);
    assert_int_equal(order_blocked(&lane->order, &next), rows[i].blocked);
    assert_int_equal(order_calls_at(&lane->order) != INT64_MAX, !rows[i].blocked);
    assert_true(order_enter(&lane->order, &flight));
    flight.decision.head = false;
    s->look_soon = false;
    scheduler_leave_order(s, &flight, false);
    assert_int_equal(s->look_soon, rows[i].shard == SHARD_BOUND);
    assert_null(lane->order.keys);
  }
}

int main(void) {
  log_set_level(LOG_LEVEL_ERROR);
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(heads_that_are_over_elsewhere_are_soon_noticed),
      TEST(a_table_of_heads_that_is_held_keeps_only_keys_waiting),
      TEST(many_heads_are_read_in_parts),
      TEST(a_reload_keeps_nobody_waiting_for_heads),
      TEST(a_shard_that_comes_keeps_nobody_waiting_for_heads),
      TEST(blocked_rows_come_back_by_a_walk_of_short_steps),
      TEST(a_walk_that_left_rows_behind_is_done_anew_by_the_next_look),
      TEST(a_walk_that_may_have_passed_by_is_not_what_keys_wait_for),
      TEST(behind_a_task_that_is_tried_again_soon_nobody_is_blocked),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
