/* SPDX-License-Identifier: MIT */
#include "core/retry.h"

enum { HASTY_FAILURES = 3, LEAST_WISH_MS = 1000 };

static int64_t base_wait(const struct retry_policy *policy, uint32_t failures) {
  if (policy->level_count > 0) {
    size_t level = failures - 1 < policy->level_count ? failures - 1 : policy->level_count - 1;
    return policy->levels_ms[level];
  }
  double wait = (double)policy->backoff_ms;
  for (uint32_t i = 1; i < failures && wait < (double)policy->max_ms; i++)
    wait *= policy->multiplier;
  return wait < (double)policy->max_ms ? (int64_t)wait : policy->max_ms;
}

static int64_t unhurried(const struct retry_policy *policy, int64_t wish_ms) {
  int64_t first = base_wait(policy, 1), least = first < LEAST_WISH_MS ? first : LEAST_WISH_MS;
  return wish_ms < least ? least : wish_ms;
}

int64_t retry_wait_ms(const struct retry_policy *policy, uint32_t failures, uint32_t max_attempts, uint64_t random,
                      int64_t wish_ms, int64_t least_ms) {
  uint32_t limit = max_attempts ? max_attempts : policy->max_attempts;
  if (limit && failures >= limit)
    return -1;
  if (wish_ms >= 0)
    return failures > HASTY_FAILURES ? unhurried(policy, wish_ms) : wish_ms;
  int64_t wait = base_wait(policy, failures ? failures : 1);
  double spread = (double)(random >> 11) / 9007199254740992.0; /* 53 random bits to [0,1) */
  wait = (int64_t)((double)wait * (1 - policy->jitter + 2 * policy->jitter * spread));
  if (policy->max_ms > 0 && wait > policy->max_ms)
    wait = policy->max_ms;
  wait = wait < least_ms ? least_ms : wait;
  return wait < 0 ? 0 : wait;
}
