/* SPDX-License-Identifier: MIT
 *
 * However many routes are flooded, a task of one that is not waits for few of their turns to be read (P8). It used to
 * wait for one of each: seconds where hundreds had a backlog. So it is with claims that a dead daemon has left.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/clock.h"
#include "core/base/sync.h"
#include "reader_fixture.h"

enum { FLOODED = 200, STATEMENT_US = 2000 };

struct turns {
  struct fixture f;
  struct lane lanes[FLOODED + 1]; /* the last one is quiet */
  bool keyed;                     /* of the quiet one others become due as one is read */
  size_t of[FLOODED + 1];         /* statements */
};

/* One row, or as many as it may be where there are more: those of a flooded lane. They are none of the lane's: reading
 * is what this is about. */
static enum store_status read_one(struct store_session *ss, const struct store_range *ranges, size_t count,
                                  int64_t ahead_us, struct store_limit limit, struct task_batch **batch,
                                  int64_t *next_us, int64_t *now_us, struct err *err) {
  struct turns *t = (struct turns *)(void *)ss;
  size_t at = 0;
  while (ranges[0].route != t->lanes[at].name)
    at++;
  t->of[at]++;
  thread_sleep(STATEMENT_US);
  uint64_t ids[256];
  size_t n = at < FLOODED ? ranges[0].limit : t->keyed ? 40 : 1;
  assert_in_range(n, 1, sizeof ids / sizeof *ids);
  for (size_t i = 0; i < n; i++)
    ids[i] = i + 1;
  *batch = make_batch(ids, n, TASK_SCHEDULED);
  if (next_us)
    next_us[0] = at < FLOODED || t->keyed ? 2 : INT64_MAX;
  *now_us = clock_mono_us();
  return STORE_OK;
}

static void make_due(struct lane *lane) {
  struct group *group = lane_group(lane, 0, 5, true);
  assert_non_null(group);
  group->epoch = 1;
  group->due = true;
}

static size_t statements(const struct turns *t) {
  size_t n = 0;
  for (size_t i = 0; i <= FLOODED; i++)
    n += t->of[i];
  return n;
}

static void make(struct turns *t, const struct store *store) {
  struct fixture *f = &t->f;
  struct instant now = clock_instant();
  f->config.engine.batch = 100;
  f->config.engine.max_payload = 1 << 20;
  f->ref = (struct config_ref){.users = 1, .config = &f->config};
  f->plugin = (struct plugin_config){.name = "null", .module = &reader_module};
  f->route = (struct route_config){.name = "r", .plugin = &f->plugin, .concurrency = 100, .inflight_bytes = 1 << 20};
  f->driver = (struct driver){.module = &reader_module, .max_inflight = 1000};
  mailbox_init(&f->settler);
  leases_init(&f->leases);
  atomic_store(&f->leases.epoch[0], 1);
  atomic_store(&f->leases.safe_until_us[0], INT64_MAX);
  atomic_store(&f->leases.skew_us[0], now.boot_us - now.mono_us);
  f->s = (struct scheduler){.store = store,
                            .ss = (struct store_session *)(void *)t,
                            .leases = &f->leases,
                            .metrics = &f->metrics,
                            .settler = &f->settler,
                            .flights = &f->flights,
                            .config = &f->ref,
                            .lanes = &t->lanes[0]};
  f->s.view[0].epoch = 1;
  for (size_t i = 0; i <= FLOODED; i++) {
    struct lane *lane = &t->lanes[i];
    snprintf(lane->name, sizeof lane->name, "r%zu", i);
    lane->route = &f->route;
    lane->driver = &f->driver;
    lane->next = i < FLOODED ? &t->lanes[i + 1] : NULL;
    make_due(lane);
  }
}

static void unmake(struct turns *t) {
  for (size_t i = 0; i <= FLOODED; i++)
    free(t->lanes[i].groups);
  flight_table_free(&t->f.flights);
  mailbox_destroy(&t->f.settler);
  leases_destroy(&t->f.leases);
  free(t);
}

static void a_quiet_route_waits_for_few_turns_of_many_that_are_flooded(void **state) {
  static const struct store_ops ops = {.read = read_one};
  const struct store store = {.ops = &ops};
  struct turns *t = calloc(1, sizeof *t);
  assert_non_null(t);
  make(t, &store);
  /* Who is flooded shows when each has been read once. */
  for (int round = 0; t->of[FLOODED] == 0 || t->of[FLOODED - 1] == 0; round++) {
    assert_in_range(round, 0, 10 * FLOODED);
    scheduler_read(&t->f.s);
  }
  size_t had[FLOODED];
  memcpy(had, t->of, sizeof had);
  for (int task = 0; task < 50; task++) {
    size_t before = statements(t), quiet = t->of[FLOODED];
    make_due(&t->lanes[FLOODED]);
    scheduler_read(&t->f.s);
    assert_int_equal(t->of[FLOODED], quiet + 1);
    assert_in_range(statements(t) - before, 2, FLOODED / 10); /* and the others go on */
    assert_true(t->f.s.read_more);
  }
  /* They have their turns, one as often as another. */
  for (int round = 0; t->of[0] < had[0] + 4; round++) {
    assert_in_range(round, 0, 10 * FLOODED);
    scheduler_read(&t->f.s);
  }
  for (size_t i = 1; i < FLOODED; i++)
    assert_in_range(t->of[i] - had[i], t->of[0] - had[0] - 1, t->of[0] - had[0] + 1);
  unmake(t);
}

/* When hundreds become flooded at once, each has its first turn before anybody knows: seconds on a busy machine, in
 * which every other route waited. One that was read to its end lately does not. */
static void a_route_that_was_read_lately_waits_for_few_first_turns(void **state) {
  static const struct store_ops ops = {.read = read_one};
  const struct store store = {.ops = &ops};
  struct turns *t = calloc(1, sizeof *t);
  assert_non_null(t);
  make(t, &store);
  for (size_t i = 0; i < FLOODED; i++)
    t->lanes[i].groups->due = false;
  scheduler_read(&t->f.s);
  assert_int_equal(statements(t), 1);
  for (size_t i = 0; i < FLOODED; i++)
    make_due(&t->lanes[i]);
  for (int round = 0; t->of[0] == 0 || t->of[FLOODED - 1] == 0; round++) {
    size_t quiet = t->of[FLOODED];
    assert_in_range(round, 0, 10 * FLOODED);
    make_due(&t->lanes[FLOODED]);
    scheduler_read(&t->f.s);
    assert_int_equal(t->of[FLOODED], quiet + 1);
  }
  unmake(t);
}

/* Of an order_key one task goes at a time. Where others had become due meanwhile the route counted as flooded, and the
 * next of the key waited for a turn of each that was: ten tasks a second came later and later. */
static void so_does_a_route_of_which_little_is_read_at_a_time(void **state) {
  static const struct store_ops ops = {.read = read_one};
  const struct store store = {.ops = &ops};
  struct turns *t = calloc(1, sizeof *t);
  assert_non_null(t);
  make(t, &store);
  t->keyed = true;
  for (int round = 0; t->of[FLOODED] == 0 || t->of[FLOODED - 1] == 0; round++) {
    assert_in_range(round, 0, 10 * FLOODED);
    scheduler_read(&t->f.s);
  }
  for (int task = 0; task < 20; task++) {
    size_t quiet = t->of[FLOODED];
    scheduler_read(&t->f.s);
    assert_int_equal(t->of[FLOODED], quiet + 1);
    assert_true(t->f.s.read_more);
  }
  unmake(t);
}

/* After a crash rows of a route wait until claims of the dead are taken back: those of that route. All routes of the
 * shard used to wait for all of them, some thousand a second. */
static void a_route_without_claims_of_the_dead_does_not_wait_for_those_of_others(void **state) {
  static const struct store_ops ops = {.read = read_one};
  static const struct store_group claims[] = {{.state = TASK_CLAIMED, .route = "r0", .priority = 5},
                                              {.state = TASK_CLAIMED, .route = "r200", .priority = 5}};
  const struct shard_lease lease = {.shard = 0, .epoch = 1};
  const struct store store = {.ops = &ops};
  struct turns *t = calloc(1, sizeof *t);
  assert_non_null(t);
  make(t, &store);
  struct scheduler *s = &t->f.s;
  mutex_init(&s->lanes_lock);
  for (size_t i = 0; i <= FLOODED; i++)
    HASH_ADD_KEYPTR(hh, s->by_name, t->lanes[i].name, strlen(t->lanes[i].name), &t->lanes[i]);
  s->claims_lost = shard_bit(0);
  scheduler_read(s);
  assert_int_equal(statements(t), 0); /* nobody knows yet which have some */
  scheduler_return_seen(s, claims, 1, &lease, 1);
  t->lanes[1].next = &t->lanes[FLOODED]; /* three are enough */
  for (int turn = 0; turn < 100 && !(t->of[1] && t->of[FLOODED]);
       turn++) /* a busy machine uses up the time of a turn */
    scheduler_read(s);
  assert_int_equal(t->of[0], 0);
  assert_in_range(t->of[1], 1, 100);
  assert_in_range(t->of[FLOODED], 1, 100);
  scheduler_return_seen(s, claims, 2, &lease, 1); /* what is claimed now is ours */
  make_due(&t->lanes[FLOODED]);
  size_t before = t->of[FLOODED];
  for (int turn = 0; turn < 100 && t->of[FLOODED] == before; turn++)
    scheduler_read(s);
  assert_true(t->of[FLOODED] > before);
  assert_int_equal(t->of[0], 0);
  s->claims_lost = 0;
  for (int turn = 0; turn < 100 && !t->of[0]; turn++)
    scheduler_read(s);
  assert_true(t->of[0] > 0);
  HASH_CLEAR(hh, s->by_name);
  mutex_destroy(&s->lanes_lock);
  unmake(t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_quiet_route_waits_for_few_turns_of_many_that_are_flooded),
      cmocka_unit_test(a_route_that_was_read_lately_waits_for_few_first_turns),
      cmocka_unit_test(so_does_a_route_of_which_little_is_read_at_a_time),
      cmocka_unit_test(a_route_without_claims_of_the_dead_does_not_wait_for_those_of_others),
  };
  return cmocka_run_group_tests_name("scheduler turns", tests, NULL, NULL);
}
