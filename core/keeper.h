/* SPDX-License-Identifier: MIT
 *
 * core/keeper.h - the thread that keeps our place: heartbeat, shard leases, operators' route settings, housekeeping.
 *
 * Housekeeping has a thread and a connection to itself: dropping a partition must not cost a lease. It also ends tasks
 * whose time is over and that nobody would look at again.
 *
 * It has a connection of its own, so that a long read or a slow settle never costs a lease, and it goes on while the
 * daemon drains. It also watches the drivers: one that shows no sign of life is reported to the engine.
 */
#ifndef CORE_KEEPER_H
#define CORE_KEEPER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "core/base/attr.h"
#include "core/base/err.h"
#include "core/base/log_repeat.h"
#include "core/config_ref.h"
#include "core/expiry.h"
#include "core/leases.h"
#include "core/metrics.h"
#include "core/store.h"

struct pause_request {
  struct route_setting setting;
  char actor[128];
  struct pause_request *next;
};

struct keeper {
  /* Filled by the engine before the start. */
  const struct store *store;
  struct leases *leases;
  struct engine_metrics *metrics;
  struct instance_row me;
  struct config_ref *(*config)(void *engine); /* the caller drops it */
  void (*shards_changed)(void *engine);
  void (*route_setting)(void *engine, const struct route_setting *settings, size_t count);
  void (*watch)(void *engine); /* once a second */
  struct route_metrics *(*route_metrics)(void *engine, const char *route);
  void *engine;

  pthread_t thread, housekeeper;
  pthread_mutex_t lock; /* guards what follows */
  pthread_cond_t woken;
  bool stopping;
  bool alone; /* the shards seen last were all ours or all held by others: we are ready */
  bool seen_shards;
  struct pause_request *requests; /* routes to pause, from threads that have no session */
  struct log_repeat trouble;      /* with the database, as it was logged */

  struct expiry expiry; /* housekeeper thread */

  /* Keeper thread. */
  struct store_session *ss;
  uint32_t living;
  int64_t routes_differ_us; /* since when the daemons have had different routes; 0 = they have the same */
  bool routes_differ_said;
};

MUSTCHECK bool keeper_start(struct keeper *keeper, struct err *err);
/* Gives all shards back, says goodbye, ends the thread. Everything in flight must be settled before. */
void keeper_stop(struct keeper *keeper);
/* Asks for a route to be paused in the table; text is copied. Any thread. */
void keeper_pause_route(struct keeper *keeper, const char *route, const char *actor, const char *reason);
/* Whether the table of shards has been read and every shard has an owner. Any thread. */
bool keeper_ready(struct keeper *keeper);

#endif
