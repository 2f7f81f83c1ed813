/* SPDX-License-Identifier: MIT
 *
 * core/recall.h - of which leases a sink has tasks, and when it is to give them back.
 *
 * What a plugin has accepted may stand in its queue for as long as the destination does. When the lease of its shard is
 * lost, or is not certain any more, whoever holds the shard next may cancel it: so nothing of it may leave from then
 * on. The driver asks here in every turn. A plugin is asked once for what it was given under a lease, not again and
 * again for what it cannot take back: it would give back what it was given since under leases that are safe.
 *
 * The driver's thread, but for recall_left().
 */
#ifndef CORE_RECALL_H
#define CORE_RECALL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/leases.h"

/* How soon a lease that ends before its time is noticed: one that was found lost, or is in doubt after a jump of a
 * clock. */
enum { RECALL_LOOK_US = 100 * 1000 };

/* All zero is a sink that was given nothing. */
struct recall {
  atomic_uint open[STORE_SHARDS_MAX]; /* tasks that it was given and has not completed */
  uint64_t epoch[STORE_SHARDS_MAX];   /* of the lease under which the first of those in `given` was given */
  uint64_t given;                     /* bits: shards of which it was given tasks since it was last asked for them */
};

/* It is given a task of the shard, read under that lease. */
void recall_given(struct recall *recall, uint8_t shard, uint64_t epoch);
/* It has completed one, or did not take it. Any thread. */
void recall_left(struct recall *recall, uint8_t shard);
/* Whether it is to be asked now: a lease under which it was given open tasks is not safe any more. *shard: which one.
 * Otherwise *rest_us says after which time that is to be found out again; INT64_MAX = it has nothing. */
bool recall_due(struct recall *recall, const struct leases *leases, struct instant now, uint8_t *shard,
                int64_t *rest_us);
/* It was asked for everything that it has. */
void recall_asked(struct recall *recall);

#endif
