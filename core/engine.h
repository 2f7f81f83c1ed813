/* SPDX-License-Identifier: MIT
 *
 * core/engine.h - the running engine as its surroundings see it: the daemon starts and stops it, the admin listener
 * looks at it and hands it commands.
 *
 * Threads: engine_start() and engine_free() belong to the main thread. One reload runs at a time, from any thread;
 * engine_drain() and engine_stop() block their caller and have a thread of their own. Everything else may be called
 * from any thread.
 */
#ifndef CORE_ENGINE_H
#define CORE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/attr.h"
#include "core/base/err.h"
#include "core/config.h"
#include "core/metrics.h"
#include "core/readiness.h"
#include "core/store.h"

struct engine;

/* Starts all threads. The store outlives the engine; the configuration becomes the engine's. Servers that are down are
 * no error: they are tried again until they are there. */
MUSTCHECK bool engine_start(const struct store *store, struct config *config, struct engine **out, struct err *err);
/* Between start and join: takes its place, looks and does what people ask, but hands nothing over, and changes no task
 * by itself. Results are taken. It lasts as long as the engine. */
void engine_hold(struct engine *engine);
/* Takes its place beside the other daemons: listens for results, takes leases, sends. Everything else that can fail at
 * the start of the process comes before this, so that a daemon that cannot run disturbs none that does. On failure the
 * engine is to be stopped. */
MUSTCHECK bool engine_join(struct engine *engine, struct err *err);

/* Takes routes and limits of `next` as one step; on success next belongs to the engine and the former configuration is
 * freed when its last task is settled. On failure nothing changes and next stays the caller's. */
MUSTCHECK bool engine_reload(struct engine *engine, struct config *next, struct err *err);
/* Counts a reload that changed nothing: the engine never sees a file that cannot be loaded. */
void engine_reload_refused(struct engine *engine);

/* Lets what is in flight end, for at most timeout_ms; leases are renewed meanwhile. Where no other daemon lives it
 * reads nothing from now on; else each shard until another daemon may have it, for three quarters of the time at most.
 */
void engine_drain(struct engine *engine, int64_t timeout_ms);
/* Makes a drain or a stop in progress wait no more than it must. Async-signal-safe it is not; any thread. */
void engine_hurry(struct engine *engine);
/* Settles what is known, gives the shards back, ends all threads. It waits for statements under way: as long as a
 * database that neither answers nor is silent makes it. */
void engine_stop(struct engine *engine);
/* Frees an engine that is stopped. */
void engine_free(struct engine **engine);

/* A thread that the engine cannot do without has ended for good (out of memory, repeated plugin hang): the process
 * should exit so that its supervisor starts a new one. NULL = all is well. */
const char *engine_failed(const struct engine *engine);

const struct engine_metrics *engine_metrics(const struct engine *engine);

/* One topic, key or URL of a route that is suspended by itself. */
struct target_status {
  char name[256];
  const char *health;
  char error_class[64];
  char reason[256];
  char message_id[65]; /* of the task that met the trouble first */
  int64_t probe_in_us; /* 0 = its probe is out, or waits for a task */
};

struct route_status {
  const char *name; /* valid until the reference to the status is dropped */
  const char *via;
  bool known;         /* false: rows exist for it, no configuration does (they are held) */
  bool paused;        /* by an operator or by 410 */
  bool suspended;     /* the destination is in trouble; probed from time to time */
  int64_t stalled_us; /* so long it has confirmed nothing of what it was given; 0 = it has, or not for long */
  char stalled_target[256], stalled_task[65]; /* stalled: what it was given first, by message id, and where; or "" */
  int64_t held_us;                            /* so long claims have failed to get held_task; 0 = they get all */
  char held_task[65];
  int64_t full_us; /* so long no place has become free for what waits, beyond what calls take; 0 = it is not full */
  char full_task[65];
  const char *health;
  char reason[256];              /* of suspended */
  char pause_reason[256];        /* of paused */
  struct target_status *targets; /* those of its own that are in trouble */
  size_t target_count;
  const struct route_metrics *metrics;
  uint64_t waiting_groups; /* groups of rows (shard x priority) that wait for their time */
  int64_t next_due_us;     /* earliest due time that is known; 0 = none */
};

struct plugin_status {
  char name[64];
  char role[8]; /* "sink", "source" */
  bool up;
  char text[PLUGIN_TEXT]; /* what the plugin said last about its destination */
  uint32_t inflight;
  int64_t unread_us;        /* a source: how long it has not been read although its broker answers */
  int64_t last_poll_age_us; /* since its driver was last seen alive */
};

struct shard_status {
  uint8_t shard;
  uint64_t epoch;
  bool held;    /* ours */
  bool leaving; /* being given back */
};

struct engine_status {
  char instance[STORE_INSTANCE_MAX + 1];
  bool draining;
  bool ready; /* all that should make progress does */
  bool db_up; /* the database answers, and lets us find and read what is due */
  struct problem_list problems;
  char not_ready[1024]; /* the problems as one text */
  struct route_status *routes;
  size_t route_count;
  struct plugin_status *plugins;
  size_t plugin_count;
  struct shard_status shards[STORE_SHARDS_MAX];
  size_t shard_count;
  int64_t started_us; /* wall clock */
  int64_t db_now_us;  /* estimate of the database's clock */
};

/* A snapshot; release it with engine_status_free. Any thread. */
MUSTCHECK bool engine_status(struct engine *engine, struct engine_status *out);
void engine_status_free(struct engine_status *status);

enum command_answer {
  COMMAND_DONE = 0,
  COMMAND_DONE_MAYBE_SENT, /* done; a copy of it had left before, or may have */
  COMMAND_NOT_FOUND,       /* no living row of that id */
  COMMAND_AMBIGUOUS,       /* the id is that of two tasks */
  COMMAND_IN_FLIGHT,       /* it is on its way out, or awaits its result, which can be cancelled only */
  COMMAND_STATE,           /* its state does not allow it */
  COMMAND_ELSEWHERE,       /* another instance holds its shard: ask there */
  COMMAND_LOCKED,          /* another transaction holds its row, or what is written beside it: nothing was changed */
  COMMAND_FAILED,          /* database trouble: err says which; nothing was changed as far as can be known */
  COMMAND_LEFT,            /* of many: not tried, since those before it are large */
};

struct task_command {
  enum intervention verb;
  const char *id; /* decimal row id or message id */
  int64_t due_us; /* RESCHEDULE */
  const char *actor, *reason;
};

enum { COMMANDS_TOGETHER = 64 };

/* One command for up to COMMANDS_TOGETHER tasks, which are changed together where they are of one shard. What somebody
 * else has locked is passed over. */
struct task_commands {
  struct task_command each; /* id: not used */
  const char *const *ids;   /* distinct tasks */
  size_t count;
  const char *filter;           /* what people named them by, for the audit */
  enum command_answer *answers; /* for each; FAILED: so it is for all others of its shard that could be changed */
};

/* Runs a command in the thread that reads rows, so that no task can slip out beside it. Waits for the answer, at most
 * timeout_ms (then COMMAND_FAILED). Any thread but the engine's own. */
enum command_answer engine_command(struct engine *engine, const struct task_command *command, int64_t timeout_ms,
                                   struct err *err);
/* The same for many, but nothing is tried again; err: of the last that failed. False: none was tried, and err says why.
 */
MUSTCHECK bool engine_commands(struct engine *engine, const struct task_commands *commands, int64_t timeout_ms,
                               struct err *err);

/* A result record that came by another road than a source plugin (HTTP callback, API). Waits for the commit, at most
 * timeout_ms; false with err = not known, offer it again. *result says what it did, and err which flaw the record has
 * if any. Any thread. */
MUSTCHECK bool engine_result(struct engine *engine, const struct result_offer *offer, int64_t timeout_ms,
                             struct store_result *result, struct err *err);

/* Pauses or resumes a route, in the table, for all daemons. Any thread. */
MUSTCHECK bool engine_pause_route(struct engine *engine, const char *route, bool paused, const char *actor,
                                  const char *reason, struct err *err);

/* Whether a callback token is ours for road->attempt, by HMAC-SHA256 with callbacks.secret, and for which row and
 * version of it, and which lane: written to road. */
MUSTCHECK bool engine_callback_verify(const struct engine *engine, const char *message_id, const char *token,
                                      struct record_road *road);

#endif
