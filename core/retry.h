/* SPDX-License-Identifier: MIT
 *
 * core/retry.h - the pure retry policy: after how many milliseconds the next attempt comes, or never.
 */
#ifndef CORE_RETRY_H
#define CORE_RETRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct retry_policy {
  const int64_t *levels_ms; /* the n-th failure waits levels_ms[n-1], the last one repeats; NULL = back-off below */
  size_t level_count;
  int64_t backoff_ms;    /* first wait without levels */
  double multiplier;     /* each further wait is this much longer */
  int64_t max_ms;        /* no wait is longer, with jitter too */
  double jitter;         /* 0..1: the wait is spread evenly over [1-jitter, 1+jitter] */
  uint32_t max_attempts; /* failures allowed; 0 = no limit */
};

/* failures: how many attempts have failed, this one included (>= 1). max_attempts: the row's own, 0 = the policy's.
 * random: any 64 bits. wish_ms: the consumer's retry_in_ms, which replaces the policy's wait, never the limit on
 * attempts; from the fourth failure on it is a second at least, or the policy's first wait where that is shorter, for
 * who always asks for none would be asked as fast as it answers, with a row of history each time. least_ms: the
 * destination's Retry-After, before which nothing is sent; a short one does not hasten the policy, for a proxy that
 * says "1" would use up all attempts in an outage of a minute. -1 = none of either. Returns the wait in ms, or -1 when
 * the budget is used up. */
int64_t retry_wait_ms(const struct retry_policy *policy, uint32_t failures, uint32_t max_attempts, uint64_t random,
                      int64_t wish_ms, int64_t least_ms);

#endif
