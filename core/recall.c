/* SPDX-License-Identifier: MIT */
#include "core/recall.h"

void recall_given(struct recall *recall, uint8_t shard, uint64_t epoch) {
  unsigned before = atomic_fetch_add_explicit(&recall->open[shard], 1, memory_order_relaxed);
  if (before == 0 || !(recall->given & shard_bit(shard))) /* else what it had before is as much a reason to ask */
    recall->epoch[shard] = epoch;
  recall->given |= shard_bit(shard);
}

void recall_left(struct recall *recall, uint8_t shard) {
  atomic_fetch_sub_explicit(&recall->open[shard], 1, memory_order_relaxed);
}

bool recall_due(struct recall *recall, const struct leases *leases, struct instant now, uint8_t *shard,
                int64_t *rest_us) {
  *rest_us = INT64_MAX;
  for (uint64_t left = recall->given; left; left &= left - 1) {
    *shard = (uint8_t)__builtin_ctzll(left);
    if (atomic_load_explicit(&recall->open[*shard], memory_order_relaxed) == 0) {
      recall->given &= ~shard_bit(*shard);
      continue;
    }
    int64_t safe_us = leases_safe_us(leases, *shard, recall->epoch[*shard], now);
    if (safe_us == 0)
      return true;
    *rest_us = earlier(*rest_us, earlier(safe_us, RECALL_LOOK_US));
  }
  return false;
}

void recall_asked(struct recall *recall) { recall->given = 0; }
