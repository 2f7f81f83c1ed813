/* SPDX-License-Identifier: MIT
 *
 * Suspended routes are read for a probe now and then, each with statements of its own. Those of hundreds of routes may
 * be due at once, and the routes that are well wait for a few of them at most (P8).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/base/clock.h"
#include "core/base/sync.h"
#include "core/reader.h"

enum { SUSPENDED = 200, STATEMENT_US = 2000 };

struct fixture {
  struct scheduler s;
  struct leases leases;
  struct engine_metrics metrics;
  struct config config;
  struct config_ref ref;
  struct plugin_config plugin;
  struct route_config route;
  struct driver driver;
  struct lane lanes[SUSPENDED + 1]; /* the last one is well */
  size_t probes, reads;             /* statements for suspended lanes, and for the other one */
};

static enum store_status read_nothing(struct store_session *ss, const struct store_range *ranges, size_t count,
                                      int64_t ahead_us, struct store_limit limit, struct task_batch **batch,
                                      int64_t *next_us, int64_t *now_us, struct err *err) {
  struct fixture *f = (struct fixture *)ss;
  bool well = ranges[0].route == f->lanes[SUSPENDED].name;
  f->reads += well;
  f->probes += !well;
  thread_sleep(STATEMENT_US);
  next_us[0] = INT64_MAX;
  *now_us = clock_mono_us();
  return STORE_OK;
}

/* They are for no probe but the one whose turn it is. */
static enum store_status find_nothing(struct store_session *ss, const struct store_range *ranges,
                                      const struct store_cursor *until, size_t range_count, struct found_id *found,
                                      size_t *count, struct err *err) {
  *count = 0;
  return STORE_OK;
}

static void make_due(struct lane *lane) {
  struct group *group = lane_group(lane, 0, 5, true);
  assert_non_null(group);
  group->epoch = 1;
  group->due = true;
}

static void probes_of_many_suspended_routes_let_the_others_through(void **state) {
  static const struct store_ops ops = {.read = read_nothing, .find = find_nothing};
  const struct store store = {.ops = &ops};
  const struct duebox_plugin module = {DUEBOX_PLUGIN_PREFIX, .name = "null"};
  struct fixture *f = calloc(1, sizeof *f);
  assert_non_null(f);
  f->config.engine.batch = 100;
  f->ref = (struct config_ref){.users = 1, .config = &f->config};
  f->plugin = (struct plugin_config){.name = "null", .module = &module};
  f->route = (struct route_config){.name = "r", .plugin = &f->plugin, .concurrency = 100, .inflight_bytes = 1 << 20};
  f->driver = (struct driver){.module = &module, .max_inflight = 1000};
  leases_init(&f->leases);
  atomic_store(&f->leases.epoch[0], 1);
  atomic_store(&f->leases.safe_until_us[0], INT64_MAX);
  struct instant now = clock_instant();
  atomic_store(&f->leases.skew_us[0], now.boot_us - now.mono_us);
  f->s = (struct scheduler){.store = &store,
                            .ss = (struct store_session *)f,
                            .leases = &f->leases,
                            .metrics = &f->metrics,
                            .config = &f->ref,
                            .lanes = &f->lanes[0]};
  f->s.view[0].epoch = 1;
  for (size_t i = 0; i <= SUSPENDED; i++) {
    struct lane *lane = &f->lanes[i];
    snprintf(lane->name, sizeof lane->name, "r%zu", i);
    lane->route = &f->route;
    lane->driver = &f->driver;
    lane->health.state = i < SUSPENDED ? HEALTH_SUSPENDED : HEALTH_OK;
    lane->next = i < SUSPENDED ? &f->lanes[i + 1] : NULL;
    make_due(lane);
  }
  for (size_t round = 1; round == 1 || f->s.read_more; round++) {
    size_t before = f->probes;
    scheduler_read(&f->s);
    assert_int_equal(f->reads, round);
    assert_in_range(f->probes - before, 1, SUSPENDED / 10);
    make_due(&f->lanes[SUSPENDED]);
  }
  assert_int_equal(f->probes, SUSPENDED); /* each has had its turn */
  for (size_t i = 0; i <= SUSPENDED; i++)
    free(f->lanes[i].groups);
  leases_destroy(&f->leases);
  free(f);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(probes_of_many_suspended_routes_let_the_others_through)};
  return cmocka_run_group_tests_name("scheduler probes", tests, NULL, NULL);
}
