/* SPDX-License-Identifier: MIT
 *
 * tests/unit/test_retry.c - the retry policy as plain tables: after which failure comes which wait.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/retry.h"

#define MIDDLE (UINT64_C(1) << 63) /* the random number that jitter turns into "exactly the wait" */

static const int64_t levels[] = {5000, 30000, 60000};

static const struct retry_policy by_levels = {.levels_ms = levels, .level_count = 3, .max_attempts = 10, .max_ms = 0};
static const struct retry_policy by_backoff = {.backoff_ms = 1000, .multiplier = 2, .max_ms = 10000};
static const struct retry_policy jittered = {
    .levels_ms = levels, .level_count = 3, .jitter = 0.2, .max_ms = 62000, .max_attempts = 0};
static const struct retry_policy odd = {.backoff_ms = 1000, .multiplier = 1.5, .max_ms = 100000, .jitter = 1};
static const struct retry_policy flat = {.backoff_ms = 700, .multiplier = 1, .max_ms = 700};

static const struct row {
  const struct retry_policy *policy;
  uint32_t failures, max_attempts;
  uint64_t random;
  int64_t wish_ms, wait_ms, least_ms;
} rows[] = {
    /* Levels: one after the other, the last one repeats, the tenth failure is the last. */
    {&by_levels, 1, 0, 0, -1, 5000, -1},
    {&by_levels, 2, 0, 0, -1, 30000, -1},
    {&by_levels, 3, 0, 0, -1, 60000, -1},
    {&by_levels, 4, 0, 0, -1, 60000, -1},
    {&by_levels, 9, 0, 0, -1, 60000, -1},
    {&by_levels, 10, 0, 0, -1, -1, -1},
    {&by_levels, 11, 0, 0, -1, -1, -1},
    /* The row's own limit goes before the policy's, in both directions. */
    {&by_levels, 1, 1, 0, -1, -1, -1},
    {&by_levels, 2, 3, 0, -1, 30000, -1},
    {&by_levels, 3, 3, 0, -1, -1, -1},
    {&by_levels, 19, 20, 0, -1, 60000, -1},
    /* A wish replaces the wait, but buys no attempt. */
    {&by_levels, 1, 0, 0, 0, 0, -1},
    {&by_levels, 1, 0, 0, 123, 123, -1},
    {&by_levels, 10, 0, 0, 123, -1, -1},
    /* Three times any, then a second at least, or the first wait where the policy itself is in more of a hurry. */
    {&by_levels, 3, 0, 0, 0, 0, -1},
    {&by_levels, 4, 0, 0, 0, 1000, -1},
    {&by_levels, 4, 0, 0, 1001, 1001, -1},
    {&by_backoff, UINT32_MAX, 0, 0, 999, 1000, -1},
    {&flat, 4, 0, 0, 0, 700, -1},
    {&flat, 4, 0, 0, 900, 900, -1},
    /* A Retry-After makes it longer, never shorter, and buys no attempt either. */
    {&by_levels, 1, 0, 0, -1, 5000, 1000},
    {&by_levels, 2, 0, 0, -1, 90000, 90000},
    {&by_levels, 10, 0, 0, -1, -1, 1000},
    {&by_backoff, 5, 0, 0, -1, 60000, 60000},
    /* Back-off: doubled up to the limit; no limit on attempts. */
    {&by_backoff, 1, 0, 0, -1, 1000, -1},
    {&by_backoff, 2, 0, 0, -1, 2000, -1},
    {&by_backoff, 4, 0, 0, -1, 8000, -1},
    {&by_backoff, 5, 0, 0, -1, 10000, -1},
    {&by_backoff, UINT32_MAX, 0, 0, -1, 10000, -1},
    {&flat, 1, 0, 0, -1, 700, -1},
    {&flat, UINT32_MAX, 0, 0, -1, 700, -1},
    /* Jitter: from -20 % to +20 %, never beyond max. */
    {&jittered, 1, 0, 0, -1, 4000, -1},
    {&jittered, 1, 0, MIDDLE, -1, 5000, -1},
    {&jittered, 1, 0, UINT64_MAX, -1, 6000, -1},
    {&jittered, 3, 0, 0, -1, 48000, -1},
    {&jittered, 3, 0, UINT64_MAX, -1, 62000, -1},
    {&odd, 1, 0, 0, -1, 0, -1},
    {&odd, 3, 0, MIDDLE, -1, 2250, -1},
    {&odd, 1, 0, UINT64_MAX, -1, 1999, -1},
};

static void test_rows(void **state) {
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    const struct row *row = &rows[i];
    int64_t wait =
        retry_wait_ms(row->policy, row->failures, row->max_attempts, row->random, row->wish_ms, row->least_ms);
    if (wait != row->wait_ms)
      fail_msg("row %zu: %lld instead of %lld", i, (long long)wait, (long long)row->wait_ms);
  }
}

/* Whatever comes, a wait is -1 or lies between 0 and the limit. */
static void test_bounds(void **state) {
  uint64_t random = 88172645463325252u;
  for (int i = 0; i < 200000; i++) {
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    uint32_t failures = (uint32_t)(random >> 40) % 200 + 1;
    int64_t wait = retry_wait_ms(&odd, failures, 0, random, -1, -1);
    assert_in_range(wait, 0, 100000);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows), cmocka_unit_test(test_bounds)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
