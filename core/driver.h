/* SPDX-License-Identifier: MIT
 *
 * core/driver.h - one instance of a plugin and the thread that drives it.
 *
 * Everything a plugin may be called with happens here, one call at a time: submit, poll, ack, close, stop. Tasks come
 * in through a mailbox; outcomes leave in one hand-over per poll. A plugin that does not come back is noticed by its
 * last sign of life; its driver is then abandoned (thread and instance stay, forgotten) and another takes its place.
 */
#ifndef CORE_DRIVER_H
#define CORE_DRIVER_H

#include <duebox/plugin.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "core/base/attr.h"
#include "core/base/err.h"
#include "core/base/log_repeat.h"
#include "core/base/sync.h"
#include "core/config.h"
#include "core/flight.h"
#include "core/leases.h"
#include "core/mailbox.h"
#include "core/metrics.h"
#include "core/readiness.h"
#include "core/recall.h"

struct inbox;

/* Whether the plugin's create() has come back. */
enum driver_birth { DRIVER_COMING, DRIVER_BORN, DRIVER_FAILED };

/* What a driver shares with the rest of the engine. */
struct driver_env {
  struct flight_table *flights;
  struct mailbox *settler; /* where outcomes go */
  struct leases *leases;
  struct inbox *inbox; /* where result records go; sources only */
  struct engine_metrics *metrics;
  void (*reachable)(void *engine); /* the plugin says that its destination is back; NULL = nobody asks */
  void *engine;
};

struct ack {
  uint64_t cookie;
  bool committed;
};

struct driver {
  const char *name; /* "bus", or "bus#0" for a source */
  const struct duebox_plugin *module;
  enum duebox_role role;
  void *inst;
  struct duebox_instance_config instance; /* as create() gets it */
  struct duebox_host host;
  struct driver_env env;
  uint32_t capacity;        /* of the instance, as it was made */
  atomic_uint max_inflight; /* of its routes: a reload changes it, within the capacity */
  bool realtime;
  atomic_uint at_sink;  /* given to the plugin and not answered */
  struct recall recall; /* of which leases that is; its thread */
  struct mailbox in;

  struct thread thread;
  bool started;   /* thread exists */
  bool destroyed; /* joined, and the plugin's destroy() has run */
  atomic_bool closing;
  atomic_bool ended;            /* the thread is over */
  atomic_int stop_ms;           /* > 0: stop now, within this time */
  atomic_int_fast64_t alive_us; /* monotonic, last sign of life */

  /* Held by the driver thread except while it is inside the plugin, so that abandoning it can never cut into its own
   * bookkeeping: coming back from the plugin it sees `abandoned` before it touches a flight. */
  struct mutex own;
  struct cond born;
  enum driver_birth birth;
  struct duebox_error birth_error;
  bool abandoned;
  struct driver *successor;     /* it hangs, and this one takes its place; guarded by its scheduler, as is */
  struct driver *next_replaced; /* the one that hung after it */
  struct flight_list pending;   /* waiting for room at the sink, for milliseconds */
  struct flight_list done;      /* completed, not yet with the settler */

  /* Sources: acknowledgements on their way to the plugin. */
  struct mutex ack_lock;
  struct ack *acks;
  size_t ack_count, ack_cap;
  atomic_bool wants_resume; /* result() has returned false */
  atomic_uint yields;       /* how often what was handed over and not written was given back */
  bool yielded;             /* and nothing is read now; its thread */

  struct mutex health_lock;
  struct log_repeat said; /* lines of what the plugin says: its destination may make it say something all the time */
  bool up;
  int64_t unread_since_us; /* monotonic: its broker answers and its records are not read; 0 = not so */
  bool stands_by;          /* a source: it is up, and another consumer reads its records */
  int64_t taken_since_us;  /* monotonic: and that is no daemon of this outbox; 0 = not so */
  bool taken_said;
  atomic_uint ups; /* how often it has come up */
  /* Monotonic: from when on its tasks are to be answered in time. INT64_MAX = it says that its destination is away, and
   * they wait for that; 0 = it has never said so. */
  atomic_int_fast64_t reaches_us;
  char health[PLUGIN_TEXT];
};

/* Starts a driver, which makes its instance and starts it: create() may block, and is waited for by driver_born().
 * `source` is NULL for a sink. NULL: no memory or no thread. Main or keeper thread. */
MUSTCHECK struct driver *driver_start(const struct config *config, const struct plugin_config *plugin,
                                      const struct source_config *source, const struct driver_env *env,
                                      struct err *err);
/* What has become of its create(), waiting for it up to wait_ms. DRIVER_FAILED: err says why. Until it is born nothing
 * else may be done with a driver, except to give it up. */
MUSTCHECK enum driver_birth driver_born(struct driver *driver, int wait_ms, struct err *err);
/* Ends and frees one that was never used, whatever has become of its create(). False: that has not come back in time,
 * and its thread is abandoned. Main or keeper thread. */
MUSTCHECK bool driver_give_up(struct driver **driver);
/* At most so many tasks at once from now on. Scheduler thread. */
void driver_limit(struct driver *driver, uint32_t max_inflight);
/* Hands opened flights over; list becomes empty. Scheduler thread. */
void driver_push(struct driver *driver, struct flight_list *list);
/* A flight is completed: if the plugin had it, there is room for another. confirmed: the destination has answered.
 * Whoever completes it, once. Any thread. */
void driver_left(struct flight *flight, bool confirmed);
/* The record of that cookie is committed, or never will be. Results thread. */
void driver_ack(struct driver *driver, uint64_t cookie, bool committed);
void driver_resume(struct driver *driver);
/* Makes it refuse new work; what is open goes on. Any thread. */
void driver_close(struct driver *driver);
/* Asks it to end within timeout_ms; every open task is completed by then. */
void driver_stop(struct driver *driver, int timeout_ms);
/* Waits for its thread. False: it has not ended in time, and is abandoned. Main thread. */
MUSTCHECK bool driver_join(struct driver *driver, int timeout_ms);
/* Destroys and frees one that was joined, once nobody knows it any more; an abandoned one stays. Main thread. */
void driver_free(struct driver **driver);
/* Gives a driver up that hangs or whose thread has ended: nothing it does counts from now on, and its memory stays.
 * *unsent: what its plugin has not seen, tokens closed; *done: what was completed and not yet handed on. */
void driver_abandon(struct driver *driver, struct flight_list *unsent, struct flight_list *done);
/* Whether its thread has ended by itself, or has given no sign of life for limit_us beyond an idle poll. Any thread. */
bool driver_stuck(const struct driver *driver, int64_t limit_us);
enum { DRIVER_SILENT_US = 1000 * 1000 };
/* Whether a driver that is looked at about once a second, and nudged before, is to be replaced: it is stuck, and was so
 * at a look DRIVER_SILENT_US ago. Silence while the whole process stood still says nothing of the plugin, which answers
 * the nudge. *silent_us: monotonic, when it was found stuck first; 0 = it is not. */
bool driver_hangs(const struct driver *driver, int64_t limit_us, int64_t now_us, int64_t *silent_us);
/* Wakes it where it has given no sign of life beyond an idle poll: its plugin may end what keeps it. Any thread. */
void driver_nudge(struct driver *driver);
/* Whether its plugin has kept a task that it was given at handed_us for longer than limit_us, though it has said
 * nothing of its destination being away meanwhile. Any thread. */
bool driver_forgot(const struct driver *driver, int64_t handed_us, int64_t limit_us, int64_t now_us);
void driver_health(struct driver *driver, bool *up, char text[PLUGIN_TEXT]);
/* How long its source has not been read although its broker answers; 0 = it is read, or its broker is away. */
int64_t driver_unread_us(struct driver *driver);
/* Of a source, whether it reads, or stands by for another consumer. Any thread. */
void driver_reading(struct driver *driver, bool *reads, bool *stands_by);
/* Whether the consumer for which it stands by is no daemon of this outbox: then its results are not read. Any thread.
 */
void driver_taken(struct driver *driver, bool taken);

#endif
