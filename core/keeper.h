/* SPDX-License-Identifier: MIT
 *
 * core/keeper.h - three threads that keep our place, each with a connection of its own.
 *
 * - leases: renews the shards' leases and does nothing else, so that nothing that can block ever costs a lease.
 * - keeper: says that we live, takes free shards and gives back those beyond our share, and holds our name, or stands
 * by for it: of daemons of one name one alone runs what is bound to it. Reads and writes operators' route settings. It
 * also watches the drivers: one that shows no sign of life is reported to the engine.
 * - housekeeper: partitions, what is old; it ends tasks whose time is over and that nobody would look at again; it
 * keeps row ids from coming to their end.
 *
 * They go on while the daemon drains: then shards are given back one by one, as nothing of them is in flight any more.
 */
#ifndef CORE_KEEPER_H
#define CORE_KEEPER_H

#include <stdatomic.h>
#include <stdbool.h>

#include "core/base/attr.h"
#include "core/base/err.h"
#include "core/base/log_repeat.h"
#include "core/base/sync.h"
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

/* What can fail by itself, each with a log id of its own. */
enum keeper_work {
  KEEPER_LEASES,
  KEEPER_SHARDS,
  KEEPER_ROUTES,
  KEEPER_HOUSE,
  KEEPER_ROW_IDS,
  KEEPER_EXPIRY,
  KEEPER_WORKS
};

/* An instance whose lease has ended, and until when we ask whether it is silent (monotonic). */
struct keeper_silent {
  char id[STORE_INSTANCE_MAX + 1]; /* "" = none */
  int64_t until_us;
};

/* A source of results, as the keeper of the outbox's table sees it. */
struct keeper_source {
  uint64_t entry; /* config_answer_to(): the same in all daemons */
  bool reads, stands_by;
};

enum { KEEPER_THREADS = 3, KEEPER_SILENT = 8, KEEPER_JUMP_US = 500 * 1000 };

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
  /* The sources of results, one by one; false = there are no more. And of one that stands by, whether no living daemon
   * reads what it would. */
  bool (*source)(void *engine, size_t i, struct keeper_source *out);
  void (*source_taken)(void *engine, size_t i, bool taken);
  struct route_metrics *(*route_metrics)(void *engine, const char *route);
  void *engine;
  bool on_hold; /* no house is kept: nothing expires, nothing old is deleted */
  atomic_bool draining;
  atomic_bool others; /* other daemons live, as the last round has seen; a round that failed has seen none */

  struct thread threads[KEEPER_THREADS];
  unsigned running;
  struct mutex lock; /* guards what follows */
  struct cond woken;
  bool stopping;
  bool emptied; /* a shard may be given back */
  bool seen_shards;
  uint64_t unowned;               /* of the shards seen last: neither ours nor another's, as shard_bit() */
  int64_t unread_since_us;        /* monotonic: since when the table of shards could not be read; 0 = it was */
  struct pause_request *requests; /* routes to pause, from threads that have no session */
  struct log_repeat trouble[KEEPER_WORKS], refused; /* as it was logged */

  struct expiry expiry; /* housekeeper thread */

  struct clock_bounds db_clock; /* leases thread */

  /* Keeper thread. */
  struct store_session *ss;
  uint32_t living;
  bool wants_shards; /* another daemon is to give us some */
  struct keeper_silent silent[KEEPER_SILENT];
  int64_t names_at_us;   /* monotonic: when leases of names are to be renewed */
  int64_t name_since_us; /* database clock: since when our name has been ours; 0 = it is another daemon's */
  bool name_open;        /* what is bound to it is read */
  bool name_awaited;     /* said that it is another one's */
  char namesake[STORE_INSTANCE_MAX + 1]; /* another daemon of our name, as it was found last; "" = none */
  int64_t namesake_at_us;                /* monotonic: when to look for one */
  bool namesake_said;
  int64_t routes_differ_us; /* since when the daemons have had different routes; 0 = they have the same */
  bool routes_differ_said;
};

void keeper_init(struct keeper *keeper);
/* Starts the threads. Once; keeper_stop() also after it has failed. */
MUSTCHECK bool keeper_start(struct keeper *keeper, struct err *err);
/* No shards are taken any more, and ours are given back as soon as nothing of them is in flight: what waits there must
 * not wait for calls of others. Any thread. */
void keeper_drain(struct keeper *keeper);
/* Whether other daemons live that take our shards over, and some are to be read until then. Any thread. */
bool keeper_hands_over(struct keeper *keeper);
/* A shard that is leaving may be given back now. Any thread. */
void keeper_shard_empty(struct keeper *keeper);
/* Gives all shards back, says goodbye, ends the thread. Everything in flight must be settled before. */
void keeper_stop(struct keeper *keeper);
/* Asks for a route to be paused in the table, unless somebody has set it since that time (database clock); text is
 * copied. Any thread. */
void keeper_pause_route(struct keeper *keeper, const char *route, const char *actor, const char *reason,
                        int64_t since_us);
/* The fence of a statement has refused that lease: it is not ours any more, and nothing is read or sent under it from
 * now on. The shard comes back by the ordinary way, under another epoch. Any thread. */
void keeper_lost(struct keeper *keeper, const struct shard_lease *lease);
/* Whether the table of shards has been read and every shard has an owner. *unowned: those that have none, as
 * shard_bit(); *unread_us: for how long the table could not be read, 0 = it was. Any thread. */
bool keeper_ready(struct keeper *keeper, uint64_t *unowned, int64_t *unread_us);

#endif
