/* SPDX-License-Identifier: MIT
 *
 * A settling whose fence is refused: the shard is another's, or nobody's. What is dropped is due again in the table,
 * and it leaves again at most once more: this daemon must have lost the shard before it looks there the next time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/clock.h"
#include "core/config_ref.h"
#include "core/lane.h"
#include "core/settler.h"

enum { TASKS = 2, LOST_SHARD = 1, PATIENCE_US = 60 * 1000 * 1000 };

struct fixture {
  struct settler settler;
  struct leases leases;
  struct engine_metrics metrics;
  struct mailbox scheduler;
  struct flight_table flights;
  struct config config;
  struct route_config route;
  struct config_ref ref;
  struct lane lane;
  struct task_batch batch;
  struct task tasks[TASKS];
  struct store_ops ops;
  struct store store;
  struct shard_lease told;
  unsigned tellings;
};

static enum store_status open_any(void *store, const char *purpose, struct store_session **out, struct err *err) {
  *out = store;
  return STORE_OK;
}

static void close_any(struct store_session **ss) { *ss = NULL; }

/* The rows of both shards can be settled, the lease of one is not ours any more. */
static enum store_status settle(struct store_session *ss, const struct shard_lease *leases, size_t lease_count,
                                struct decision *decisions, size_t count, bool *lost, struct err *err) {
  for (size_t i = 0; i < lease_count; i++)
    lost[i] = leases[i].shard == LOST_SHARD;
  for (size_t i = 0; i < count; i++)
    decisions[i].applied = decisions[i].shard != LOST_SHARD;
  return STORE_OK;
}

static int64_t db_now(void *engine) { return 1; }

static void shard_lost(void *engine, const struct shard_lease *lease) {
  struct fixture *f = engine;
  f->told = *lease;
  f->tellings++;
  assert_true(leases_lose(&f->leases, *lease));
}

static void release(struct task_batch *batch) {}

static int set_up(void **state) {
  struct fixture *f = calloc(1, sizeof *f);
  assert_non_null(f);
  f->ops = (struct store_ops){.open = open_any, .close = close_any, .settle = settle};
  f->store = (struct store){.ops = &f->ops, .self = f};
  f->ref = (struct config_ref){.users = 1 + TASKS, .config = &f->config}; /* never the last one */
  f->route = (struct route_config){.name = "work"};
  f->config.routes = &f->route;
  f->config.route_count = 1;
  strcpy(f->lane.name, "work");
  mailbox_init(&f->scheduler);
  leases_init(&f->leases);
  f->leases.owner = "me";
  for (int shard = 0; shard < TASKS; shard++)
    leases_gain(&f->leases, (uint8_t)shard, 7, clock_instant(), PATIENCE_US, false);
  f->settler = (struct settler){.store = &f->store,
                                .leases = &f->leases,
                                .metrics = &f->metrics,
                                .scheduler = &f->scheduler,
                                .db_now_us = db_now,
                                .shard_lost = shard_lost,
                                .engine = f,
                                .rows = TASKS};
  struct err err = {0};
  assert_true(settler_start(&f->settler, &err));
  *state = f;
  return 0;
}

static int tear_down(void **state) {
  struct fixture *f = *state;
  settler_stop(&f->settler, 1000);
  mailbox_destroy(&f->scheduler);
  leases_destroy(&f->leases);
  flight_table_free(&f->flights);
  free(f);
  return 0;
}

/* Sent from memory, one of each shard, and delivered. */
static void deliver(struct fixture *f) {
  struct flight_list done = {0};
  f->batch = (struct task_batch){.open = TASKS, .count = TASKS, .tasks = f->tasks, .release = release};
  for (unsigned i = 0; i < TASKS; i++) {
    f->tasks[i] = (struct task){.id = i + 1,
                                .shard = (uint8_t)i,
                                .state = TASK_SCHEDULED,
                                .attempt_now = 1,
                                .message_id = {"m", 1},
                                .batch = &f->batch};
    struct flight *flight = flight_take(&f->flights, &f->tasks[i]);
    assert_non_null(flight);
    flight->lane = &f->lane;
    flight->config = &f->ref;
    flight->epoch = 7;
    flight->end = FLIGHT_OUTCOME;
    flight->outcome.cls = DUEBOX_DELIVERED;
    flight->handed_us = flight->completed_us = clock_mono_us();
    flight_list_add(&done, flight);
  }
  mailbox_put(&f->settler.in, &done);
}

static void a_shard_that_the_fence_refuses_is_lost_at_once(void **state) {
  struct fixture *f = *state;
  struct flight_list settled = {0};
  deliver(f);
  int64_t limit = clock_mono_us() + PATIENCE_US;
  while (settled.count < TASKS && clock_mono_us() < limit)
    mailbox_take(&f->scheduler, limit, &settled);
  assert_int_equal(settled.count, TASKS);
  /* Before the scheduler could read what was dropped. */
  assert_int_equal(f->tellings, 1);
  assert_int_equal(f->told.shard, LOST_SHARD);
  assert_int_equal(f->told.epoch, 7);
  assert_false(leases_safe(&f->leases, LOST_SHARD, 7, clock_instant()));
  assert_true(leases_safe(&f->leases, 0, 7, clock_instant()));
  struct flight *flight;
  while ((flight = flight_list_pop(&settled))) {
    assert_int_equal(flight->settled, flight->task->shard != LOST_SHARD);
    flight_give_back(&f->flights, flight);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(a_shard_that_the_fence_refuses_is_lost_at_once, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
