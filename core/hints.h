/* SPDX-License-Identifier: MIT
 *
 * core/hints.h - what the store's watch tells, on its way to the scheduler: one promise for each group of rows.
 *
 * A hint comes a moment before its row can be seen. So a promise is kept until the row that was told last is in flight
 * (rows become visible in the order in which they are told), and the group is read again meanwhile, a few times and
 * less and less often. Nothing depends on it: what is dropped here is found by looking.
 *
 * @thread scheduler; `fresh`, `fresh_count` and `general` are under `lock`
 */
#ifndef CORE_HINTS_H
#define CORE_HINTS_H

#include <stdatomic.h>
#include <stdbool.h>

#include "core/base/sync.h"
#include "core/store.h"

struct promised_row {
  int64_t due_us; /* database clock */
  uint64_t id;    /* 0 = not known */
};

struct promise {
  char route[STORE_ROUTE_MAX + 1];
  uint8_t shard, priority;
  struct promised_row first, last; /* the one that is due first, and the one told last among those that were due */
  int64_t at_us;                   /* monotonic: when to see to it next */
  unsigned tries;
};

struct hints {
  struct mutex lock;
  struct promise fresh[STORE_HINTS_MAX];
  size_t fresh_count;
  bool general; /* something in whichever group: look */

  atomic_bool waiting;            /* there is something under the lock */
  atomic_int_fast64_t look_at_us; /* monotonic: when the scheduler looks by itself */

  struct promise kept[STORE_HINTS_MAX];
  size_t kept_count;
  int64_t look_us;       /* monotonic: when to look for what was told of no group; 0 = need not */
  unsigned looks;        /* that have been asked for since */
  int64_t round_us;      /* monotonic: when this round of promises began; 0 = there is none */
  int64_t not_before_us; /* monotonic: reading for hints has had its share of the time until then */
};

#endif
