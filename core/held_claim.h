/* SPDX-License-Identifier: MIT
 *
 * core/held_claim.h - the due task of a route that claims have failed to get for longest. Pure.
 *
 * Another transaction holds its row, or a gap of an index in which its entry would go, or the server refuses its claim.
 * Claims pass such rows over and come back to them, so nothing else would tell of it. One task of a route is followed
 * at a time: until a claim gets it, or a look finds it no more, because it was cancelled or put off, say.
 */
#ifndef CORE_HELD_CLAIM_H
#define CORE_HELD_CLAIM_H

#include <stdint.h>

#include "core/store.h"

enum { HELD_CLAIM_GONE_US = 30 * 1000 * 1000 }; /* not met for so long: another daemon has its shard, say */

/* Where a task is in the index; times by the database's clock. */
struct held_place {
  int64_t due_us;
  int64_t now_us; /* its next_at was not later than that */
  uint8_t shard, priority;
};

/* All zero: none. Times are monotonic, but for its place. */
struct held_claim {
  uint64_t id;
  char message_id[STORE_ID_MAX + 1];
  struct held_place place;
  int64_t since_us, met_us; /* when a claim failed to get it first, and last */
};

/* A claim has not got that task. */
void held_claim_met(struct held_claim *held, uint64_t id, const char *message_id, const struct held_place *place,
                    int64_t now_us);
/* Whether the task is still where it was met, as the groups of a look tell: those with scheduled rows. */
bool held_claim_found(const struct held_claim *held, const char *route, const struct store_group *groups, size_t count);
void held_claim_forget(struct held_claim *held);
/* It was claimed. */
void held_claim_got(struct held_claim *held, uint64_t id);
/* For how long claims have failed to get it; 0 = there is none. */
int64_t held_claim_age_us(const struct held_claim *held, int64_t now_us);

#endif
