/* SPDX-License-Identifier: MIT
 *
 * core/watcher.h - the thread "binlog": hands the scheduler what the store's watch tells.
 *
 * It speeds up noticing and decides nothing: where the watch cannot be had, or breaks off, polling goes on and one line
 * of the log says why. It tries again by itself, soon after a lost connection and once a minute where an operator would
 * have to act.
 */
#ifndef CORE_WATCHER_H
#define CORE_WATCHER_H

#include <stdbool.h>

#include "core/base/attr.h"
#include "core/base/err.h"
#include "core/base/sync.h"
#include "core/metrics.h"
#include "core/scheduler.h"
#include "core/store.h"

struct watcher {
  /* Filled by the engine before the start. */
  const struct store *store;
  struct scheduler *scheduler; /* runs from before the start until after the stop */
  struct engine_metrics *metrics;
  const char *host; /* engine.instance */
  int64_t max_payload;
  bool wanted; /* database.wake is binlog: not having it is an error */

  struct thread thread;
  struct mutex lock; /* guards what follows */
  struct cond woken;
  bool stopping;
  struct store_watch *watch; /* the one that the thread waits on */

  /* Watcher thread. */
  bool said;      /* why there is none, and not changed since */
  struct err why; /* what was said */
};

MUSTCHECK bool watcher_start(struct watcher *watcher, struct err *err);
/* Ends the thread, also in the middle of waiting. */
void watcher_stop(struct watcher *watcher);

#endif
