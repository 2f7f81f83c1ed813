/* SPDX-License-Identifier: MIT */
#include "core/stall.h"

#include <string.h>

enum {
  FACTOR = 4,          /* a task may take so many times as long as the median one */
  SLOTS_OF_LIMIT = 32, /* a slot collects tasks for this part of the limit */
  FIRST_ROUNDS = 3,    /* these count for FIRST_MAX_US at most: the sink may be standing still from the start */
  FIRST_MAX_US = 500 * 1000,
};

static atomic_uint_fast64_t *word(const struct stall *stall, uint32_t number) {
  return (atomic_uint_fast64_t *)(uintptr_t)&stall->slot[number % STALL_SLOTS].open; /* for loads and stores alike */
}

static atomic_int_fast64_t *from(const struct stall *stall, uint32_t number) {
  return (atomic_int_fast64_t *)(uintptr_t)&stall->slot[number % STALL_SLOTS].from_us;
}

static uint32_t open_in(const struct stall *stall, uint32_t number) {
  uint64_t open = atomic_load_explicit(word(stall, number), memory_order_acquire);
  return open >> 32 == number ? (uint32_t)open : 0;
}

static uint32_t read_number(const atomic_uint *number) {
  return atomic_load_explicit((atomic_uint *)(uintptr_t)number, memory_order_relaxed);
}

/* Whether the slot lies before the last one of which something was confirmed. */
static bool overtaken(const struct stall *stall, uint32_t number) {
  return (int32_t)(read_number(&stall->confirmed) - number) > 0;
}

int64_t stall_limit_us(const struct stall *stall) {
  int64_t limit = atomic_load_explicit((atomic_int_fast64_t *)(uintptr_t)&stall->limit_us, memory_order_relaxed);
  return limit ? limit : STALL_FIRST_US;
}

/* The slot for a task that is handed over now. */
static uint32_t current_slot(struct stall *stall, int64_t now_us) {
  uint32_t first = read_number(&stall->first), last = read_number(&stall->last);
  bool empty = open_in(stall, last) == 0;
  int64_t since = atomic_load_explicit(from(stall, last), memory_order_relaxed);
  if (!empty && now_us - since < stall_limit_us(stall) / SLOTS_OF_LIMIT)
    return last;
  while (first != last && open_in(stall, first) == 0)
    first++;
  /* Those that have been there longest are not waited for any more: others have overtaken them, or have been there for
   * too long as well. */
  if (!empty && last + 1 - first == STALL_SLOTS)
    first++;
  atomic_store_explicit(&stall->first, first, memory_order_relaxed);
  if (empty) { /* all of it have left */
    atomic_store_explicit(from(stall, last), now_us, memory_order_relaxed);
    return last;
  }
  last++;
  atomic_store_explicit(from(stall, last), now_us, memory_order_relaxed);
  atomic_store_explicit(word(stall, last), (uint64_t)last << 32, memory_order_release);
  atomic_store_explicit(&stall->last, last, memory_order_release);
  return last;
}

uint32_t stall_handed_over(struct stall *stall, int64_t now_us) {
  uint32_t number = current_slot(stall, now_us);
  atomic_fetch_add_explicit(word(stall, number), 1, memory_order_release); /* after its time */
  return number;
}

void stall_withdrawn(struct stall *stall, uint32_t slot) {
  uint_fast64_t open = atomic_load_explicit(word(stall, slot), memory_order_relaxed);
  while (open >> 32 == slot && (uint32_t)open > 0 &&
         !atomic_compare_exchange_weak_explicit(word(stall, slot), &open, open - 1, memory_order_relaxed,
                                                memory_order_relaxed))
    ;
}

void stall_confirmed(struct stall *stall, uint32_t slot) {
  stall_withdrawn(stall, slot);
  unsigned seen = read_number(&stall->confirmed);
  while ((int32_t)(slot - seen) > 0 && !atomic_compare_exchange_weak_explicit(
                                           &stall->confirmed, &seen, slot, memory_order_relaxed, memory_order_relaxed))
    ;
}

int64_t stall_at_us(const struct stall *stall) {
  uint32_t last = read_number(&stall->last), number = read_number(&stall->first);
  if (overtaken(stall, number))
    number = read_number(&stall->confirmed);
  for (; (int32_t)(last - number) >= 0; number++)
    if (open_in(stall, number) > 0)
      return atomic_load_explicit(from(stall, number), memory_order_relaxed) + stall_limit_us(stall);
  return INT64_MAX;
}

int64_t stall_probe_at_us(const struct stall *stall) {
  int64_t handed_us = atomic_load_explicit(from(stall, read_number(&stall->last)), memory_order_relaxed);
  return (handed_us > stall->probed_us ? handed_us : stall->probed_us) + stall_limit_us(stall);
}

static int64_t read_time(const atomic_int_fast64_t *time) {
  return atomic_load_explicit((atomic_int_fast64_t *)(uintptr_t)time, memory_order_relaxed);
}

/* Whether nothing was offered for so long that the last refusal says nothing of now: a stalled sink is tried more
 * often. */
static bool is_history(const struct stall *stall, int64_t now_us) {
  return now_us - read_time(&stall->refused_to_us) > 2 * (int64_t)STALL_MAX_US;
}

void stall_refused(struct stall *stall, int64_t now_us) {
  if (read_time(&stall->refused_from_us) == 0 || is_history(stall, now_us))
    atomic_store_explicit(&stall->refused_from_us, now_us, memory_order_relaxed);
  atomic_store_explicit(&stall->refused_to_us, now_us, memory_order_relaxed);
}

void stall_taken(struct stall *stall) {
  if (read_time(&stall->refused_from_us) != 0)
    atomic_store_explicit(&stall->refused_from_us, 0, memory_order_relaxed);
}

bool stall_refuses(const struct stall *stall, int64_t now_us) {
  int64_t from_us = read_time(&stall->refused_from_us);
  return from_us != 0 && now_us - from_us >= STALL_REFUSED_US && !is_history(stall, now_us);
}

bool stall_is_over(const struct stall *stall, int64_t flows_us, int64_t now_us) {
  return stall->said_us != 0 && stall->heard_us > stall->said_us && now_us - flows_us >= STALL_OVER_US;
}

static int64_t median(const int64_t *values, unsigned count) {
  int64_t sorted[STALL_ROUNDS] = {0};
  for (unsigned i = 0; i < count; i++) {
    unsigned at = i;
    for (; at > 0 && sorted[at - 1] > values[i]; at--)
      sorted[at] = sorted[at - 1];
    sorted[at] = values[i];
  }
  return sorted[count / 2];
}

void stall_learn(struct stall *stall, int64_t handed_us, int64_t confirmed_us, int64_t now_us) {
  if (handed_us < stall->round_us)
    return;
  int64_t took = confirmed_us - handed_us;
  if (stall->rounds < FIRST_ROUNDS && took > FIRST_MAX_US)
    took = FIRST_MAX_US;
  stall->took_us[stall->rounds % STALL_ROUNDS] = took;
  stall->rounds++;
  stall->round_us = now_us;
  unsigned known = stall->rounds < STALL_ROUNDS ? stall->rounds : STALL_ROUNDS;
  int64_t limit = FACTOR * median(stall->took_us, known);
  limit = limit < STALL_MIN_US ? STALL_MIN_US : limit > STALL_MAX_US ? STALL_MAX_US : limit;
  atomic_store_explicit(&stall->limit_us, limit, memory_order_relaxed);
}
