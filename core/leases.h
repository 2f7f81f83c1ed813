/* SPDX-License-Identifier: MIT
 *
 * core/leases.h - which shards are ours, under which epoch, and until when it is safe to act on that.
 *
 * Written by the keeper, read by everybody. A lease is safe until a local time that was measured from before the
 * statement that renewed it, less a margin: a paused or cut-off daemon stops sending before anybody else may start. The
 * time is boot time, which goes on while the machine is suspended. After any jump of a clock, ours or the database's, a
 * lease is in doubt, which means not safe, until the database has renewed it.
 *
 * SHARD_BOUND is read by every daemon that holds its name (core/keeper.h), and shut for one that does not; its own sign
 * of life counts as its lease there, since others take over the claims of a daemon that gives none.
 *
 * A shard is given back in steps, so that a route whose calls are long stops no other one. First it empties: lanes
 * whose tasks are out for long read it no more, the slowest first, and when nothing of these is out any more it is the
 * turn of the next slower ones. When only quick lanes have anything out it is shut: nobody reads it, and when nothing
 * of it is in flight, some milliseconds later, the keeper gives it back. Should that not come so soon, it is opened
 * again.
 */
#ifndef CORE_LEASES_H
#define CORE_LEASES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/base/clock.h"
#include "core/base/sync.h"
#include "core/store.h"

/* In this order. */
enum lease_stage {
  LEASE_STAYS,
  LEASE_EMPTIES, /* it is leaving: slow lanes read it no more */
  LEASE_SHUT,    /* it is leaving: nobody reads it */
};

enum {
  LEASE_SLOWEST_US = 1600 * 1000, /* whose tasks are out for longer read it no more from the beginning, */
  LEASE_SLOWER = 4,               /* then those of a quarter of that, and again, */
  LEASE_SLOW_US = 100 * 1000,     /* down to these: lanes that are no slower read it until it is shut */
  LEASE_SHUT_US = 200 * 1000,     /* for so long it is shut at most, */
  LEASE_OPEN_US = 1000 * 1000,    /* and then open for so long at least */
};

struct lease_slot {
  uint64_t epoch; /* 0 = not ours */
  enum lease_stage stage;
  bool for_good;         /* this daemon ends: it is not opened again */
  int64_t slow_us;       /* it empties: lanes whose tasks are out for longer do not read it */
  int64_t turn_us;       /* monotonic: it empties: not shut before; it is shut: then it is opened again */
  int64_t leaving_us;    /* monotonic: since when it leaves */
  int64_t rest_until_us; /* a hand-over was called off: not chosen again before */
  bool quiet;            /* the scheduler reads it no more */
  bool left;             /* the daemon ends with tasks of it that may have been sent and are not settled */
  bool cautious;         /* taken over unclean: first claims are recorded and small */
};

struct leases {
  const char *owner; /* this instance; set before any shard is gained */
  struct mutex lock; /* guards slot[] */
  struct lease_slot slot[STORE_SHARDS_MAX];
  atomic_int_fast64_t safe_until_us[STORE_SHARDS_MAX]; /* boot time; 0 = not ours, or in doubt */
  atomic_int_fast64_t skew_us[STORE_SHARDS_MAX];       /* boot time less monotonic time when it was renewed */
  atomic_int_fast64_t doubt_us;                        /* boot time: what was sent before proves nothing */
  atomic_uint_fast64_t epoch[STORE_SHARDS_MAX];
  atomic_int_fast32_t in_flight[STORE_SHARDS_MAX]; /* flights of the shard; written by the scheduler */
};

void leases_init(struct leases *leases);
void leases_destroy(struct leases *leases);

/* --- keeper --- */
/* sent: when the statement was sent that acquired or renewed it, for_us: for how long it is safe from then on. */
void leases_gain(struct leases *leases, uint8_t shard, uint64_t epoch, struct instant sent, int64_t for_us,
                 bool cautious);
void leases_renewed(struct leases *leases, struct shard_lease lease, struct instant sent, int64_t for_us);
/* false: it was not ours any more. *left: whether it is to be given back unclean, see leases_note_left(); may be NULL.
 */
bool leases_lose(struct leases *leases, struct shard_lease lease, bool *left);
/* A clock has jumped: no lease is safe until a statement that is sent from now on has renewed it. Any thread. */
void leases_doubt(struct leases *leases, int64_t now_boot_us);
/* Whether our name is ours: SHARD_BOUND is read from now on, or no more. What of it is in flight ends as it does. It is
 * opened only when the scheduler has seen that it was shut, which it is at first: what it knew does not hold after
 * another daemon of this name. Returns whether it is open. */
bool leases_hold_name(struct leases *leases, bool ours);
void leases_leave(struct leases *leases, uint8_t shard, int64_t now_us);
/* All of them and for good: this daemon ends. They empty as others do, and are not shut before read_for_us is over, so
 * that others have seen by then that they are to take them; 0 = there are no others, and all are shut at once. */
void leases_leave_all(struct leases *leases, int64_t now_us, int64_t read_for_us);
/* Calls off what began limit_us ago and is not done: long calls are in flight. The shard is read again. */
void leases_stay(struct leases *leases, int64_t now_us, int64_t limit_us);
/* Of the shards that stay, and whose hand-over was not called off lately, the one with the fewest tasks in flight;
 * false = there is none. */
bool leases_idlest(struct leases *leases, int64_t now_us, uint8_t *shard);
/* How many shards are to stay, SHARD_BOUND not counted. */
size_t leases_staying(struct leases *leases);
/* How many are not shut: they stay or empty. SHARD_BOUND not counted. Any thread. */
size_t leases_read(struct leases *leases);
/* Whether it was shut, quiet and had nothing in flight. If so it is not ours any more: nothing may be read under a
 * lease that somebody else may hold next. */
bool leases_give_back(struct leases *leases, struct shard_lease lease, bool *left);

/* The shards that the keeper has to keep up: all but SHARD_BOUND. Returns how many. */
size_t leases_owned(struct leases *leases, struct shard_lease out[STORE_SHARDS_MAX]);

/* --- settler, or whoever ends --- */
/* Tasks of the shard may have been sent and will not be settled by this daemon. */
void leases_note_left(struct leases *leases, uint8_t shard);
/* The same of all shards that have anything in flight. */
void leases_note_all_left(struct leases *leases);

/* --- scheduler --- */
/* Copies all slots and acknowledges those that are shut. */
void leases_view(struct leases *leases, struct lease_slot view[STORE_SHARDS_MAX]);
/* Takes a shard that is leaving a step further when it is time, or opens it again. slow_out: lanes that read it no more
 * have something of it out. False: it stays as it is. */
bool leases_step(struct leases *leases, uint8_t shard, bool slow_out, int64_t now_us);
void leases_calm(struct leases *leases, uint8_t shard); /* ends the caution after a takeover */
void leases_worry(struct leases *leases,
                  uint8_t shard); /* begins it anew: what was in flight in a crash is still there */

/* --- any thread --- */
/* All shards that we hold, leaving ones too, safe or not. Returns how many. */
size_t leases_held(struct leases *leases, struct shard_lease out[STORE_SHARDS_MAX]);
/* Whether the lease of that epoch is still ours and safe now. */
bool leases_safe(const struct leases *leases, uint8_t shard, uint64_t epoch, struct instant now);
/* For how much longer it is, unless it is renewed, lost or doubted before; 0 = it is not. */
int64_t leases_safe_us(const struct leases *leases, uint8_t shard, uint64_t epoch, struct instant now);

/* How far the database's clock is from our boot time, as one answer bounds it. */
struct clock_bounds {
  bool known;
  int64_t low_us, high_us;
};
/* Takes a new answer into account, that the database stamped between sent and got. Returns by how much the clocks have
 * moved against each other since the last answer; 0 = not noticeably. */
int64_t clock_bounds_moved(struct clock_bounds *bounds, int64_t db_now_us, int64_t sent_boot_us, int64_t got_boot_us);

#endif
