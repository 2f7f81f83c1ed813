/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/clock.h"
#include "reader_fixture.h"

static void woken(void *inst) {}
const struct duebox_plugin reader_module = {DUEBOX_PLUGIN_PREFIX, .name = "null", .wakeup = woken};
void release(struct task_batch *batch) { ((struct fixture *)batch->buffer)->released++; }

static void free_batch(struct task_batch *batch) {
  free(batch->tasks);
  free(batch);
}

struct task_batch *make_batch(const uint64_t *ids, size_t count, enum task_state state) {
  struct task_batch *batch = calloc(1, sizeof *batch);
  assert_non_null(batch);
  *batch = (struct task_batch){.open = (unsigned)count, .count = count, .release = free_batch};
  batch->tasks = calloc(count, sizeof *batch->tasks);
  assert_non_null(batch->tasks);
  for (size_t i = 0; i < count; i++)
    batch->tasks[i] = (struct task){.id = ids[i],
                                    .state = state,
                                    .attempt = state == TASK_CLAIMED,
                                    .due_us = (int64_t)ids[i],
                                    .priority = 5,
                                    .route = {"work", 4},
                                    .message_id = {"m", 1},
                                    .payload = {"x", 1},
                                    .payload_len = 1,
                                    .batch = batch};
  return batch;
}

int set_up(void **state) {
  struct fixture *f = calloc(1, sizeof *f);
  assert_non_null(f);
  f->config.engine.max_payload = 1 << 20;
  f->config.engine.instance = "here";
  f->ref = (struct config_ref){.users = 1, .config = &f->config}; /* never the last one */
  f->plugin = (struct plugin_config){.name = "null", .module = &reader_module};
  f->route = (struct route_config){.name = "work", .plugin = &f->plugin, .concurrency = 100, .inflight_bytes = 1 << 20};
  f->driver = (struct driver){.module = &reader_module, .max_inflight = 1000};
  mailbox_init(&f->driver.in);
  mailbox_init(&f->settler);
  leases_init(&f->leases);
  f->lane.route = &f->route;
  f->lane.driver = &f->driver;
  strcpy(f->lane.name, "work");
  f->s = (struct scheduler){.leases = &f->leases,
                            .metrics = &f->metrics,
                            .settler = &f->settler,
                            .flights = &f->flights,
                            .config = &f->ref,
                            .instance = "me"};
  mutex_init(&f->s.lanes_lock);
  f->s.view[0].epoch = 1;
  *state = f;
  return 0;
}

int tear_down(void **state) {
  struct fixture *f = *state;
  struct flight_list left = {0};
  struct flight *flight;
  mailbox_take(&f->driver.in, 0, &left);
  mailbox_take(&f->settler, 0, &left);
  while ((flight = flight_list_pop(&left)))
    flight_give_back(&f->flights, flight);
  while (f->lane.groups) {
    struct group *group = f->lane.groups;
    f->lane.groups = group->next;
    free(group);
  }
  assert_int_equal(f->released, 1);
  flight_table_free(&f->flights);
  mailbox_destroy(&f->driver.in);
  mailbox_destroy(&f->settler);
  leases_destroy(&f->leases);
  free(f);
  return 0;
}

size_t take_tasks(struct fixture *f, const struct task *tasks, size_t count, size_t most, bool recorded) {
  f->batch = (struct task_batch){.open = (unsigned)count, .count = count, .tasks = f->tasks, .buffer = f};
  f->batch.release = release;
  f->released = 0;
  for (size_t i = 0; i < count; i++) {
    f->tasks[i] = tasks[i];
    f->tasks[i].state = TASK_SCHEDULED;
    f->tasks[i].message_id = (struct duebox_bytes){"m", 1};
    f->tasks[i].payload = (struct duebox_bytes){tasks[i].payload_len ? NULL : "x", 1};
    f->tasks[i].payload_len = tasks[i].payload_len ? tasks[i].payload_len : 1;
    f->tasks[i].batch = &f->batch;
    if (!tasks[i].due_us)
      f->tasks[i].due_us = 1;
    if (!tasks[i].route.len)
      f->tasks[i].route = (struct duebox_bytes){"work", 4};
  }
  const struct reading reading = {
      .lane = &f->lane, .most = most, .recorded = recorded, .began_us = clock_mono_us(), .due_until_us = 10};
  reader_take(&f->s, &reading, &f->batch);
  return mailbox_count(&f->driver.in);
}
