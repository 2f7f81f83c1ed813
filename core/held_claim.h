/* SPDX-License-Identifier: MIT
 *
 * core/held_claim.h - the due task of a route that claims have failed to get for longest. Pure.
 *
 * Another transaction holds its row, or a gap of an index in which its entry would go, or the server refuses its claim.
 * Claims pass such rows over and come back to them, so nothing else would tell of it. One task of a route is followed
 * at a time: until a claim gets it, or none has met it for a while because it is gone.
 */
#ifndef CORE_HELD_CLAIM_H
#define CORE_HELD_CLAIM_H

#include <stdint.h>

#include "core/store.h"

enum { HELD_CLAIM_GONE_US = 30 * 1000 * 1000 };

/* All zero: none. Times are monotonic, but for due_us. */
struct held_claim {
  uint64_t id;
  char message_id[STORE_ID_MAX + 1];
  int64_t due_us;
  int64_t since_us, met_us; /* when a claim failed to get it first, and last */
};

/* A claim has not got that task. */
void held_claim_met(struct held_claim *held, uint64_t id, const char *message_id, int64_t due_us, int64_t now_us);
/* It was claimed. */
void held_claim_got(struct held_claim *held, uint64_t id);
/* For how long claims have failed to get it; 0 = there is none. */
int64_t held_claim_age_us(const struct held_claim *held, int64_t now_us);

#endif
