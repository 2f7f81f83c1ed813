/* SPDX-License-Identifier: MIT
 *
 * core/engine_internal.h - the engine's parts together; for core/engine*.c only.
 */
#ifndef CORE_ENGINE_INTERNAL_H
#define CORE_ENGINE_INTERNAL_H

#include "core/base/sync.h"
#include "core/config_ref.h"
#include "core/engine.h"
#include "core/inbox.h"
#include "core/keeper.h"
#include "core/scheduler.h"
#include "core/settler.h"
#include "core/watcher.h"

/* One use of a plugin, as sink or source. Its driver is replaced when it hangs: by `coming`, as soon as that is born.
 */
struct seat {
  const struct plugin_config *plugin; /* these are of the first configuration, which lives as long as the engine */
  const struct source_config *source; /* NULL for a sink */
  struct driver *driver;
  struct driver *coming; /* guarded by watch_lock */
  unsigned replaced;
  int64_t silent_us; /* of driver_hangs() */
};

struct engine {
  const struct store *store;
  char instance[STORE_INSTANCE_MAX + 1];
  int64_t started_us;
  struct config_ref *first; /* plugin instances point into it */

  struct mutex config_lock;
  struct config_ref *config; /* the current one */

  struct engine_metrics metrics;
  struct flight_table flights;
  struct leases leases;
  struct settler settler;
  struct scheduler scheduler;
  struct keeper keeper;
  struct watcher watcher;
  struct inbox *inbox;

  struct log_repeat server_changed;
  struct mutex watch_lock;   /* held while the keeper looks after the drivers, and never together with others */
  struct mutex drivers_lock; /* a seat's driver changes under it */
  struct seat *sinks;
  size_t sink_count;
  struct seat *sources;
  size_t source_count;

  bool settler_runs, scheduler_runs, keeper_runs, watcher_runs;
  atomic_bool left_thread; /* a hung plugin's thread was left alone: it may come back, and what it uses stays */
  atomic_bool draining, hurry;
  const char *_Atomic failed;
};

struct config_ref *engine_config(void *engine); /* the caller drops it */

#endif
