/* SPDX-License-Identifier: MIT
 *
 * core/flight.h - tasks between "read from the table" and "settled": one flight each.
 *
 * A flight's slot is never freed while the engine runs, and its token carries a generation, so a plugin that completes
 * twice, too late or something it never got is counted and harmless. Slots are taken and given back by the scheduler
 * thread only; completing one is a single atomic exchange from any thread. Between the two a flight belongs to one
 * thread at a time: scheduler -> driver -> settler -> scheduler, handed over through mailboxes.
 */
#ifndef CORE_FLIGHT_H
#define CORE_FLIGHT_H

#include "core/base/hash.h"

#define HASH_NONFATAL_OOM 1
#define HASH_FUNCTION(text, len, hash) ((hash) = (unsigned)hash_keyed(text, len)) /* applications choose the keys */
#include <uthash.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/attr.h"
#include "core/rules.h"
#include "core/suspects.h"
#include "core/task.h"

struct lane;
struct group;
struct driver;
struct config_ref;

/* Where the decision about a flight comes from. */
enum flight_end {
  FLIGHT_OUTCOME,   /* the sink reported an outcome */
  FLIGHT_UNSENT,    /* never submitted, or recalled: shutdown or a lost lease; a memory claim is simply forgotten */
  FLIGHT_REFUSED,   /* it can never be sent: error_class and text say why */
  FLIGHT_EXPIRED,   /* expires_at has come */
  FLIGHT_MOVES,     /* never submitted: it goes to the shard or host that somebody asks for */
  FLIGHT_BLOCKED,   /* the head of its order_key is to be tried again first */
  FLIGHT_DEFERRED,  /* its target is suspended: outcome.retry_after_ms says for how long, its texts why */
  FLIGHT_NO_RESULT, /* an awaiting row whose time is over */
  FLIGHT_STOPPED,   /* the daemon ends while the sink has it: possibly sent, and nobody's failure */
  FLIGHT_RECOVER,   /* a claimed row whose holder is gone */
};

struct flight {
  uint32_t index;
  atomic_uint generation;   /* odd from hand-over to its driver until it is completed */
  atomic_bool submitted;    /* a plugin has (or may have) seen it */
  enum suspicion suspicion; /* whether its row was in flight in a crash */
  bool probe;               /* it tries whether a suspended route is back */
  bool times_sink; /* its lane's stall counts it: a memory claim, or sent to find out whether the stall is over */
  bool leaked;     /* a hung plugin may still read its task: never freed */
  uint64_t id;     /* of the row */
  struct task *task;
  size_t outcome_bytes; /* the settler's: how much its outcome writes */
  struct lane *lane;
  struct group *group;
  struct driver *driver;
  struct config_ref *config; /* the configuration its route belongs to */
  int64_t lease_ms;          /* a recorded claim lasts for so long beyond its time-out */
  uint64_t epoch;            /* of its shard's lease when it was read */
  bool over;                 /* that lease is: its row is for whoever has the shard now; the scheduler's */
  enum flight_end end;
  struct duebox_outcome outcome; /* its texts point into `text` */
  char *text;                    /* own allocation, or NULL */
  int64_t read_us;               /* monotonic: before the statement that read it */
  int64_t due_mono_us;           /* its due time by the monotonic clock; known when it goes to its driver */
  int64_t expires_mono_us;       /* its expires_at likewise, where it has one */
  uint32_t stall_slot;           /* at the sink: where its lane's stall counts it */
  uint32_t ahead;                /* how many of its lane were there when it was handed over, it included */
  _Atomic int64_t handed_us;     /* monotonic: given to the plugin, or before that to its driver */
  int64_t completed_us;          /* monotonic */
  struct decision decision;
  bool settled;        /* the decision is in the table (or needed none) */
  bool counted;        /* the settler's: in the figures of outcomes */
  bool whole;          /* the settler's: it tries whether what is refused of its lane's outcomes still is */
  int64_t busy_us;     /* the settler's, monotonic: since when somebody else holds its row; 0 = nobody has been met */
  bool parked;         /* counted as such in its lane: by the settler, until the scheduler has it back */
  struct flight *next; /* in whichever list holds it */
  bool in_order;       /* holds its order_key in its lane */
  struct flight *twin; /* another flight with the same row id: ids may be handed out again */
  UT_hash_handle by_id;
};

/* A list of flights through `next`; the owner is whoever holds the struct. */
struct flight_list {
  struct flight *head, *tail;
  size_t count;
};

void flight_list_add(struct flight_list *list, struct flight *flight);
void flight_list_join(struct flight_list *list, struct flight_list *more); /* more becomes empty */
struct flight *flight_list_pop(struct flight_list *list);

enum { FLIGHT_CHUNK = 4096, FLIGHT_CHUNKS = 1024 };

struct flight_table {
  struct flight *_Atomic chunk[FLIGHT_CHUNKS];
  uint32_t slots;            /* in all chunks */
  struct flight *free_slots; /* scheduler thread */
  struct flight *by_id;      /* uthash: tasks in flight by row id, twins behind the first; scheduler thread */
};

/* Takes a slot for a task and enters its id. NULL: out of memory or FLIGHT_CHUNKS exhausted. Scheduler thread. */
MUSTCHECK struct flight *flight_take(struct flight_table *table, struct task *task);
/* Frees the texts, gives the task back and returns the slot. Scheduler thread. */
void flight_give_back(struct flight_table *table, struct flight *flight);
/* A flight of a row with that id, or NULL: perhaps not of the row that has this id now. One whose lease is over does
 * not count: its call may go on for long, and its outcome is not written. Scheduler thread. */
struct flight *flight_by_id(const struct flight_table *table, uint64_t id);
/* All flights, those that share a row id too: the first, and the one after it; NULL at the end. Scheduler thread. */
struct flight *flight_first(const struct flight_table *table);
struct flight *flight_after(const struct flight_table *table, const struct flight *flight);
/* The flight of that task, by id and message id, or NULL, as above. Scheduler thread. */
struct flight *flight_of(const struct flight_table *table, const struct task *task);

/* Opens a flight for completion and returns its token. The thread that owns it. */
uint64_t flight_open(struct flight *flight);
/* Ends what flight_open began: the flight if the token is open (it is closed by this), else NULL. Any thread. */
struct flight *flight_complete(struct flight_table *table, uint64_t token);
/* The open token of a flight, 0 when it is not open. Any thread. */
uint64_t flight_token(const struct flight *flight);
/* Copies an outcome into a completed flight. Truncates texts; without memory for them the class alone remains. */
void flight_set_outcome(struct flight *flight, const struct duebox_outcome *outcome);
/* Whether a completed one has had all the time that its row gave it, which is less than its route's: that it was not
 * taken says nothing of the destination then, or whoever inserts tasks would decide about the health of the route. */
bool flight_own_time_is_up(const struct flight *flight, int64_t route_timeout_ms);

void flight_table_free(struct flight_table *table);

/* The facts of a flight as the rules want them. */
struct rules_task flight_facts(const struct flight *flight);

#endif
