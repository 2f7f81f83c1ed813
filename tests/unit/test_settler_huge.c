/* SPDX-License-Identifier: MIT
 *
 * While a row of 60 MB is written to the binlog nobody's COMMIT passes, whichever thread waits for it: between the
 * outcomes of such rows the others have most of the time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/clock.h"
#include "core/base/sync.h"
#include "core/config_ref.h"
#include "core/lane.h"
#include "core/settler.h"

enum { HUGE_ROWS = 4, TASKS = HUGE_ROWS + 2, TOOK_US = 20 * 1000, PATIENCE_US = 60 * 1000 * 1000 };

struct fixture {
  size_t huge, counts[HUGE_ROWS]; /* of settle() */
  int64_t began_us[HUGE_ROWS], ended_us[HUGE_ROWS];
  struct task tasks[TASKS];
  struct task_batch batch;
};

static enum store_status open_any(void *store, const char *purpose, int64_t lease_ms, struct store_session **out,
                                  struct err *err) {
  *out = store;
  return STORE_OK;
}

static void close_any(struct store_session **ss) { *ss = NULL; }

static enum store_status settle(struct store_session *ss, const struct shard_lease *leases, size_t lease_count,
                                struct decision *decisions, size_t count, bool *lost, struct err *err) {
  struct fixture *f = (struct fixture *)ss;
  if (decisions[0].id <= HUGE_ROWS) {
    f->counts[f->huge] = count;
    f->began_us[f->huge] = clock_mono_us();
    thread_sleep(TOOK_US);
    f->ended_us[f->huge++] = clock_mono_us();
  }
  for (size_t i = 0; i < count; i++)
    decisions[i].applied = true;
  memset(lost, 0, lease_count * sizeof *lost);
  return STORE_OK;
}

static int64_t db_now(void *engine) { return 1; }
static void release(struct task_batch *batch) {}

static void add_task(struct fixture *f, struct flight_table *flights, unsigned i, const struct flight *like,
                     uint64_t payload_len, struct flight_list *done) {
  f->tasks[i] = (struct task){.id = i + 1,
                              .state = TASK_SCHEDULED,
                              .payload_len = payload_len,
                              .message_id = {"m", 1},
                              .view = {.message_id = "m"},
                              .batch = &f->batch};
  struct flight *flight = flight_take(flights, &f->tasks[i]);
  assert_non_null(flight);
  flight->lane = like->lane;
  flight->config = like->config;
  flight->epoch = 7;
  flight->end = i % 2 ? FLIGHT_EXPIRED : FLIGHT_REFUSED;
  flight_list_add(done, flight);
}

static void huge_rows_leave_most_of_the_time_to_the_others(void **state) {
  struct fixture *f = calloc(1, sizeof *f);
  assert_non_null(f);
  const struct store_ops ops = {.open = open_any, .close = close_any, .settle = settle};
  const struct store store = {.ops = &ops, .self = f};
  struct route_config route = {.name = "work"};
  struct config config = {.routes = &route, .route_count = 1, .engine = {.max_payload = 1024 * 1024}};
  struct config_ref ref = {.users = 1 + TASKS, .config = &config}; /* never the last one */
  struct lane lane = {.name = "work"};
  const struct flight like = {.lane = &lane, .config = &ref};
  struct engine_metrics metrics = {0};
  struct flight_table flights = {0};
  struct flight_list done = {0}, settled = {0};
  struct mailbox scheduler;
  struct leases leases = {0};
  struct err err = {0};
  mailbox_init(&scheduler);
  leases_init(&leases);
  leases_gain(&leases, 0, 7, clock_instant(), PATIENCE_US, false);
  struct settler settler = {.store = &store,
                            .leases = &leases,
                            .metrics = &metrics,
                            .scheduler = &scheduler,
                            .db_now_us = db_now,
                            .rows = 1000};
  f->batch = (struct task_batch){.open = TASKS, .count = TASKS, .tasks = f->tasks, .release = release};
  for (unsigned i = 0; i < HUGE_ROWS; i++)
    add_task(f, &flights, i, &like, 60 * 1024 * 1024, &done);
  add_task(f, &flights, HUGE_ROWS, &like, 1000 * 1000, &done); /* as large as many that are sent */
  add_task(f, &flights, HUGE_ROWS + 1, &like, 10, &done);
  assert_true(settler_start(&settler, &err));
  mailbox_put(&settler.in, &done);
  int64_t limit = clock_mono_us() + PATIENCE_US;
  while (settled.count < TASKS && clock_mono_us() < limit)
    mailbox_take(&scheduler, limit, &settled);
  assert_int_equal(settled.count, TASKS);
  assert_int_equal(settled.head->id, HUGE_ROWS + 2);
  assert_int_equal(settled.head->next->id, HUGE_ROWS + 1);
  for (size_t i = 0; i < HUGE_ROWS; i++)
    assert_int_equal(f->counts[i], 1);
  for (size_t i = 1; i < HUGE_ROWS; i++)
    assert_true(f->began_us[i] - f->ended_us[i - 1] >= 8 * TOOK_US);
  for (struct flight *flight; (flight = flight_list_pop(&settled));)
    flight_give_back(&flights, flight);
  settler_stop(&settler, 1000);
  mailbox_destroy(&settler.in);
  mailbox_destroy(&scheduler);
  leases_destroy(&leases);
  flight_table_free(&flights);
  free(f);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(huge_rows_leave_most_of_the_time_to_the_others)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
