/* SPDX-License-Identifier: MIT
 *
 * core/lane.h - a route at work: its credit, its pause, the trouble of its destination, and the groups of rows it
 * reads.
 *
 * All of it belongs to the scheduler thread, except `metrics` (atomics) and what `status` copies under its lock. Lanes
 * are never freed while the engine runs: a reload that drops a route leaves its lane without a configuration.
 */
#ifndef CORE_LANE_H
#define CORE_LANE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "core/base/log_repeat.h"
#include "core/config_ref.h"
#include "core/depth.h"
#include "core/driver.h"
#include "core/flight.h" /* uthash as we use it */
#include "core/health.h"
#include "core/held_claim.h"
#include "core/metrics.h"
#include "core/order.h"
#include "core/refusals.h"
#include "core/stall.h"
#include "core/store.h"
#include "core/targets.h"

/* Rows of one lane that the index keeps together. */
struct group {
  struct lane *lane;
  uint8_t shard, priority;
  uint64_t epoch;             /* of the lease under which the cursor was made */
  struct store_cursor cursor; /* read up to here; {0,0} when nothing of the group is in flight or waits */
  int64_t next_us;            /* earliest due time known; INT64_MAX = none */
  int64_t low_us;             /* it has no row before, as far as is known */
  uint32_t in_flight;
  bool readable;                /* its lease is ours and safe: as of this round of reading */
  int64_t rest_until_us;        /* monotonic: nothing of it is read before, since that was in vain */
  bool rests, sweep_rests;      /* as of this round of reading: nothing of it is read, or it is not swept */
  bool due;                     /* rows beyond the cursor may be due */
  bool backlog;                 /* the last reading beyond it gave as many rows as it might */
  uint32_t wide;                /* so many times the rows that may go are read: most of the last ones have to wait */
  bool sweep;                   /* rows behind the cursor may be due: late commits, and what was handed back unsent */
  bool sweep_first;             /* before anything beyond the cursor is read */
  bool sweep_again;             /* something came behind the cursor during a pass */
  int64_t sweep_at_us;          /* monotonic: not before, for what is only suspected behind the cursor */
  int64_t bound_at_us;          /* monotonic: not before, where what is due is perhaps of other hosts, */
  int64_t sweep_rest_until_us;  /* and where the last page behind the cursor had nothing of ours */
  struct store_cursor swept;    /* how far the pass has come; {0,0} between passes */
  size_t sweep_took;            /* by this pass */
  int64_t sweep_cost_us;        /* of this pass */
  struct store_cursor expiring; /* how far a pass for rows whose time is over has come */
  uint64_t expired_pass;        /* number of the last such pass that is through with it */
  uint64_t seen;                /* number of the look that saw it last */
  struct group *next;           /* of the same lane */
};

/* Over the blocked rows of a route in one shard: those whose heads are over come back. */
struct unblock_walk {
  bool on;
  uint8_t shard;
  uint64_t epoch; /* of its lease when it began */
  struct store_walk at;
  bool for_return; /* keys waited for it when it began */
  bool any, left;  /* rows came back; or are left, since somebody has locked them */
  int64_t took_us;
};

/* Claims of a lane of which the server refuses some. */
struct refused_claims {
  unsigned turns;  /* how often some were looked for */
  int64_t wait_us; /* how long nothing was read, the last time */
  int64_t at_us;   /* monotonic: nothing is read before */
};

/* Outcomes of a lane that wait for their turn. */
enum settling_kind {
  SETTLING_QUICK, /* there is little to write of them, and of their lanes nothing was left to read: they go first */
  SETTLING_FLOOD, /* there is little to write of them, and more of their lanes was due */
  SETTLING_LARGE, /* there is much to write of them */
  SETTLING_HUGE,  /* of rows larger than any that is sent: the copy of one takes a second */
  SETTLING_APART, /* of a lane of which the server refuses some */
  SETTLING_KINDS
};

struct lane_outcomes {
  struct flight_list flights;
  struct lane *next; /* whose turn is behind this lane's */
};

enum {
  LANE_PARKED_MAX = 2048, /* parked tasks that leave their places to others; what is more keeps its places */
  LANE_WARY_FROM = 4,     /* parked tasks from which on claims are recorded, and pass over what is locked */
};

/* Tasks of a lane that have ended and cannot be settled, for another transaction holds their rows, or entries of these
 * in an index, for longer than a moment. The settler counts a flight here, the scheduler takes it out again when it is
 * back: so these are never more than what they are a part of. */
struct lane_parked {
  atomic_uint charged, ending, unread; /* of the lane's in_flight, ending and unread */
  atomic_size_t bytes;                 /* of the first two together */
};

struct lane {
  char name[STORE_ROUTE_MAX + 1];
  const struct route_config *route; /* NULL: no configuration has it any more */
  struct config_ref *config;        /* that `route` belongs to; one use */
  struct driver *driver;

  uint32_t unread; /* in flight without having been read for it: overdue, or taken back */
  uint32_t ending; /* in flight and not charged: they end, or go back, without having been at the sink */
  int64_t bytes_ending;
  uint32_t in_flight; /* charged and not settled: waiting for their moment or for room, at the sink, or answered */
  int64_t bytes_in_flight;
  atomic_size_t held_bytes; /* of all batches that have tasks in flight, settled ones included */
  double average_bytes;     /* of tasks, moving: how many rows the byte credit may buy */

  struct lane_parked parked;
  atomic_uint at_sink;     /* given to the plugin and not answered; changed by whoever does either */
  atomic_uint at_sink_max; /* its driver gives no more than that; 0: what waits goes back to the table */
  struct stall stall;      /* whether it takes what it is given: memory claims wait in the table while it does not */
  bool shares_line;        /* with the other routes of its sink: it has no more there than `depth` says */
  struct depth depth;
  bool stalled;                               /* it does not, as of this tick */
  gauge stalled_since_us;                     /* monotonic: since when; 0 = it is not */
  int64_t flows_since_us;                     /* monotonic: since when it is not */
  bool stall_noted;                           /* what has been there longest is known, as below */
  char stalled_target[256], stalled_task[65]; /* what was there longest in this stall */
  int64_t full_from_us;                       /* monotonic: when it was first seen full; 0 = it was not since */
  gauge full_since_us;                        /* the same once that is too long, for status; 0 = it is not */
  char full_task[65];                         /* what was there longest by then; under lanes_lock */
  uint32_t done;                              /* since done_since_us */
  int64_t done_since_us;
  double done_per_ms; /* moving average */
  int64_t out_us;     /* how long its tasks are out, from reading to being settled: moving average; 0 = not known */
  uint64_t away;      /* bits: shards that are leaving and that it reads no more, since its tasks are out for long */

  double tokens; /* of the rate limit */
  int64_t tokens_at_us;

  bool paused;
  struct suspects suspects; /* its tasks in flight that were so in a crash */
  int64_t set_us;           /* database clock: when an operator paused or resumed it; 0 = never */
  bool gone;                /* paused because its destination said so; the table does not know yet */
  int64_t gone_us;          /* database clock: when the call began that was told so */
  char pause_reason[256];
  struct health health;   /* of all that the route leads to */
  int64_t leads_there_us; /* monotonic: since when its plugin is told what it is told now */
  uint32_t picks;         /* how often another task was looked for than the one whose turn it is */
  int64_t pick_at_us;     /* monotonic: nothing is read before where that is to be, but for a probe */
  uint32_t probes;        /* how many have left */
  bool instance_down;     /* it is the whole plugin instance that is down, and the plugin says when it is back */
  unsigned ups_seen;      /* of its driver, when it was suspended */
  struct targets targets; /* those of its own that are in trouble */
  struct log_repeat target_trouble, target_resumed;
  struct refused_claims refused_claims;
  int64_t rests_until_us; /* monotonic: nothing is read before, since telling the size of a huge row took long */

  gauge flooded_until_us;   /* monotonic: more was due lately than one turn reads; the settler asks */
  bool backlog;             /* the last step of reading left rows behind that are due, */
  uint64_t round;           /* and was in this round */
  int64_t drained_until_us; /* monotonic: lately one had rows and left none: until then its turn is before first ones */
  struct group *groups;
  uint64_t held_shards;         /* bits: rows may be held there, since its route was not known */
  uint64_t old_shards;          /* bits: rows due long ago may be there that no poll of every group has seen */
  unsigned priorities;          /* bits of those that it has had groups of */
  struct order order;           /* tasks that wait for others of their order_key */
  uint64_t unblock_look;        /* nothing is read before this look, which brings blocked rows back */
  uint64_t blocked, claimed;    /* bits: shards with such rows, as of the last look at every group; and those of */
  uint64_t unclaimed;           /* which a look has told, since they came, that nobody before us has claims of it */
  int64_t first_blocked_us;     /* of the blocked ones, the first due time; 0 = there are none */
  uint64_t to_unblock;          /* bits: those whose blocked rows are to be walked over, */
  struct unblock_walk walk;     /* one after the other, */
  uint64_t walk_from;           /* and the next not before this look */
  int64_t unblock_at_us;        /* monotonic: when to do so without a reason */
  bool heads_unknown;           /* its route is new here: its keys are closed until the table of heads was read, */
  bool heads_come;              /* as it is being read now, from its beginning */
  bool returning;               /* keys whose heads are over wait until all shards were asked, */
  uint64_t returned;            /* bits: which have been by now */
  uint64_t unseen;              /* bits: what came back there may be of groups that no poll has seen yet */
  struct held_claim held_claim; /* changed by the scheduler, under its lanes_lock: status asks */
  int64_t call_at_us;           /* monotonic: not before, for tasks whose turn it is but that could not go */
  bool unknown_logged;
  uint64_t rows_seen;                /* held_looks when a row of it was met last, while nobody knows its route, */
  bool forgotten;                    /* and that it has none any more: it is not shown; under lanes_lock */
  gauge waiting_groups, next_due_us; /* for status: as of the last look */
  struct route_metrics metrics;
  struct lane_outcomes outcomes[SETTLING_KINDS]; /* the settler's thread: those that wait for their turn */
  size_t apart_rows;                             /* the settler's thread: how many of SETTLING_APART it tries at once */
  struct outcome_refusals refusals;
  struct lane *next;
  UT_hash_handle hh; /* by name */
};

/* Tasks that may be charged now, as far as concurrency and driver go: besides those at the sink some that are answered
 * and being settled, or that take the place of these at once. */
uint32_t lane_room(const struct lane *lane);
/* Claims were tried since began_us. Where the server refused some, nothing is read for the lane for a while: finding
 * out which takes long, and other lanes have most of the time. all: it let none pass. */
void lane_note_claims(struct lane *lane, bool refused, bool all, int64_t began_us, int64_t now_us);
/* A statement that began at began_us has read rows that are too large to be sent. The server takes its time over each,
 * and all lanes wait for it: nothing is read for this one for nine times as long. */
void lane_note_too_large(struct lane *lane, int64_t began_us, int64_t now_us);
/* A task was delivered. */
void lane_follow_delivery(struct lane *lane, const struct flight *flight);
/* More of it is due than one turn reads: for a second it counts as flooded. */
void lane_note_flood(struct lane *lane, int64_t now_us);
/* Which lanes it is read with, one kind after the other. */
enum lane_turn {
  LANE_DRAINED, /* the last turn, lately, left nothing: the next one is short */
  LANE_FIRST,   /* nobody knows how much is due */
  LANE_BACKLOG, /* the last turn left rows behind that are due */
  LANE_TURNS
};
enum lane_turn lane_turn(const struct lane *lane, int64_t now_us);
/* Whether it is. Any thread. */
bool lane_flooded(const struct lane *lane, int64_t now_us);
/* Finds out whether the lane is stalled now, and how much it may have at the sink. */
void lane_follow_stall(struct lane *lane, int64_t now_us);
/* Whether all places at the sink, or all bytes, are taken by calls that may take long. What is claimed in memory only
 * is followed by its stall. */
bool lane_is_full(const struct lane *lane);
/* Full, with others waiting, as of now or not: for longer than a call takes that its row does not prolong, something is
 * wrong. True when that begins or ends. */
bool lane_follow_places(struct lane *lane, bool full, int64_t now_us);
/* A task that was at the sink has left it. */
static inline void lane_note_left(struct lane *lane) { lane->full_from_us = 0; }
/* Tells the driver how many may be at the sink. To be called when route, driver, pause or suspension have changed. */
void lane_limit(struct lane *lane);
/* Notes that a task left, for the measure of how fast they do. */
void lane_note_done(struct lane *lane, int64_t now_us);
/* Notes how long a task was out. */
void lane_note_out(struct lane *lane, int64_t out_us);
/* Nothing of the shard is read for the lane any more, until its groups are seen anew. */
void lane_leave_shard(struct lane *lane, uint8_t shard);
/* Notes that a task found no room in time: the sink is not that quick any more. */
void lane_note_unsent(struct lane *lane);
/* Whether the next task is to be another one than that whose turn it is: most probes, and where half as many have
 * failed in a row as suspend the lane. */
bool lane_picks(const struct lane *lane);
/* Rows that may be read for the lane now, 0 when it has to wait. */
uint32_t lane_credit(const struct lane *lane, uint32_t batch, int64_t now_us);
/* Monotonic time at which a lane without credit may have some by time alone (rate, probe, stall); INT64_MAX = never. */
int64_t lane_wakes_at(const struct lane *lane, int64_t now_us);
/* The lane's group of that shard and priority; made when there is none and `make` is set. */
struct group *lane_group(struct lane *lane, uint8_t shard, uint8_t priority, bool make);
/* Up to `most` readable groups that are due and do not rest, highest priority first, then the earliest due time.
 * Returns how many. */
size_t lane_due_groups(struct lane *lane, int64_t db_now_us, struct group **out, size_t most);
/* Has what is behind the cursor looked through. */
void lane_sweep(struct group *group);
void lane_sweep_shard(struct lane *lane, uint8_t shard);
/* Has all of it looked through from its start, before anything beyond the cursors is read: tasks of an order_key are
 * there that go first. */
void lane_sweep_first(struct lane *lane);
/* Whether that is still to be done. */
bool lane_must_sweep(const struct lane *lane);
/* Nothing of the group is known any more: it is read from its start. */
void lane_restart(struct group *group);
/* A readable group to be swept that does not rest, the highest priority first; NULL = none. */
struct group *lane_swept_group(struct lane *lane);
/* Forgets groups that look number `look` did not see and that have nothing in flight. */
void lane_forget_groups(struct lane *lane, uint64_t look);
/* Notes how large a row was: so many are read at a time. */
void lane_note_size(struct lane *lane, const struct task *task);
/* A flight begins, which ends without having been at the sink unless it is charged; and is settled, or charged now. */
void lane_begin(struct lane *lane, const struct task *task);
void lane_ended(struct lane *lane, const struct task *task);
/* Bytes of tasks that may still be read; *alone: nothing is in flight, and one may come whatever its size. */
int64_t lane_bytes(const struct lane *lane, bool *alone);
/* Whether that many may. */
bool lane_fits(const struct lane *lane, int64_t bytes);
/* Counts a flight that cannot be settled among the parked ones; the settler's thread. And takes it out again, where it
 * is one of them, before it is accounted for; the scheduler's. */
void lane_park(struct lane *lane, struct flight *flight);
void lane_unpark(struct lane *lane, struct flight *flight);
/* Whether so much of what it sent is locked that the next ones are to be taken only where nobody holds them. */
bool lane_is_wary(const struct lane *lane);
/* Rows in flight without having been read for it, but for parked ones. */
uint32_t lane_unread(const struct lane *lane);
/* Whether so many end that the settler is to catch up before any more are read. */
bool lane_ends_many(const struct lane *lane);
/* Accounts for tasks handed over or settled. One that its sink never had does not count for the rate. */
void lane_charge(struct lane *lane, const struct task *task, int64_t now_us);
void lane_refund(struct lane *lane, const struct task *task, bool sent);
/* Nothing of it is due, but for what claims fail to get. */
void lane_clear_oldest(struct lane *lane);
/* Whether batches hold much more memory than their tasks that are in flight need: slow tasks keep them. Tasks that are
 * read now are to have memory of their own. */
bool lane_holds_much(const struct lane *lane);
/* A task leaves, or has come back: true when it is the one that probes a suspended route. */
bool lane_send(struct lane *lane, const struct task *task);
void lane_probe_lost(struct lane *lane, uint64_t row, int64_t now_us);

#endif
