/* SPDX-License-Identifier: MIT
 *
 * core/settler_pace.c - how much the settler writes at a time, by how long the last time took.
 */
#include "core/poll_pace.h"
#include "core/refusals.h"
#include "core/settler.h"

enum { HUGE_REST = 9, HUGE_REST_MAX_US = 10 * 1000 * 1000 };

int64_t settler_huge_rest_us(int64_t took_us) { return pace_rest_us(took_us, HUGE_REST, HUGE_REST_MAX_US); }

size_t settler_again_rows(size_t rows, int64_t took_us) {
  return refusals_rows(rows, took_us, SETTLE_LARGE_BATCH_US, SETTLE_BATCH_MAX);
}

size_t settler_large_bytes(size_t bytes, int64_t took_us) {
  if (took_us > SETTLE_LARGE_BATCH_US)
    return bytes / 2 > SETTLE_LARGE_BATCH_MIN_BYTES ? bytes / 2 : SETTLE_LARGE_BATCH_MIN_BYTES;
  return took_us < SETTLE_LARGE_BATCH_US / 2 && bytes * 2 <= SETTLE_BATCH_BYTES ? bytes * 2 : bytes;
}
