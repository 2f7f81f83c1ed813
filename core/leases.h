/* SPDX-License-Identifier: MIT
 *
 * core/leases.h - which shards are ours, under which epoch, and until when it is safe to act on that.
 *
 * Written by the keeper, read by everybody. A lease is safe until a local time that was measured from before the
 * statement that renewed it, less a margin: a paused or cut-off daemon stops sending before anybody else may start. The
 * time is boot time, which goes on while the machine is suspended. After any jump of a clock, ours or the database's, a
 * lease is in doubt, which means not safe, until the database has renewed it.
 *
 * Nobody leases SHARD_BOUND: there the daemon's own sign of life counts as its lease, since others take over the claims
 * of a daemon that gives none.
 *
 * A shard is given back in three steps: the keeper marks it leaving, the scheduler says that it reads it no more, and
 * when nothing of it is in flight the keeper gives it back.
 */
#ifndef CORE_LEASES_H
#define CORE_LEASES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/base/clock.h"
#include "core/base/sync.h"
#include "core/store.h"

struct lease_slot {
  uint64_t epoch; /* 0 = not ours */
  bool leaving;
  int64_t leaving_us;    /* monotonic: since when */
  int64_t rest_until_us; /* a hand-over was called off: not chosen again before */
  bool quiet;            /* the scheduler reads it no more */
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
/* false: it was not ours any more. */
bool leases_lose(struct leases *leases, struct shard_lease lease);
/* A clock has jumped: no lease is safe until a statement that is sent from now on has renewed it. Any thread. */
void leases_doubt(struct leases *leases, int64_t now_boot_us);
void leases_leave(struct leases *leases, uint8_t shard, int64_t now_us);
/* All of them, for good: this daemon ends. */
void leases_leave_all(struct leases *leases, int64_t now_us);
/* Calls off what began limit_us ago and is not done: long calls are in flight. The shard is read again. */
void leases_stay(struct leases *leases, int64_t now_us, int64_t limit_us);
/* Of the shards that stay, and whose hand-over was not called off lately, the one with the fewest tasks in flight;
 * false = there is none. */
bool leases_idlest(struct leases *leases, int64_t now_us, uint8_t *shard);
/* How many shards are to stay, SHARD_BOUND not counted. */
size_t leases_staying(struct leases *leases);
/* Leaving, quiet and nothing in flight. */
bool leases_may_give_back(struct leases *leases, uint8_t shard);

/* The shards that the keeper has to keep up: all but SHARD_BOUND. Returns how many. */
size_t leases_owned(struct leases *leases, struct shard_lease out[STORE_SHARDS_MAX]);

/* --- scheduler --- */
/* Copies all slots and acknowledges those that are leaving. */
void leases_view(struct leases *leases, struct lease_slot view[STORE_SHARDS_MAX]);
void leases_calm(struct leases *leases, uint8_t shard); /* ends the caution after a takeover */
void leases_worry(struct leases *leases,
                  uint8_t shard); /* begins it anew: what was in flight in a crash is still there */

/* --- any thread --- */
/* All shards that we hold, leaving ones too, safe or not. Returns how many. */
size_t leases_held(struct leases *leases, struct shard_lease out[STORE_SHARDS_MAX]);
/* Whether the lease of that epoch is still ours and safe now. */
bool leases_safe(const struct leases *leases, uint8_t shard, uint64_t epoch, struct instant now);

/* How far the database's clock is from our boot time, as one answer bounds it. */
struct clock_bounds {
  bool known;
  int64_t low_us, high_us;
};
/* Takes a new answer into account, that the database stamped between sent and got. Returns by how much the clocks have
 * moved against each other since the last answer; 0 = not noticeably. */
int64_t clock_bounds_moved(struct clock_bounds *bounds, int64_t db_now_us, int64_t sent_boot_us, int64_t got_boot_us);

#endif
