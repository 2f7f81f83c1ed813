/* SPDX-License-Identifier: MIT
 *
 * tests/unit/reader_fixture.h - a scheduler with one lane, whose rows a test gives to the reader itself.
 */
#ifndef READER_FIXTURE_H
#define READER_FIXTURE_H

#include "core/reader.h"

enum { ROWS = 256 };

struct fixture {
  struct scheduler s;
  struct leases leases;
  struct engine_metrics metrics;
  struct mailbox settler;
  struct flight_table flights;
  struct config config;
  struct config_ref ref;
  struct plugin_config plugin;
  struct route_config route;
  struct driver driver;
  struct lane lane;
  struct task tasks[ROWS];
  struct task_batch batch, claimed;
  unsigned released;
  uint32_t recoveries;
};

extern const struct duebox_plugin reader_module;

void release(struct task_batch *batch);
/* Tasks of these ids, due at the time of their id, of the route "work"; free again with the last of them. */
struct task_batch *make_batch(const uint64_t *ids, size_t count, enum task_state state);
int set_up(void **state);
int tear_down(void **state); /* one batch must have been released */
/* A batch of a few tasks, due and fresh; what is not given is as for all. One with a payload_len came without it.
 * Returns how many the driver has. */
size_t take_tasks(struct fixture *f, const struct task *tasks, size_t count, size_t most, bool recorded);

#endif
