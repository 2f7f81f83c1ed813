/* SPDX-License-Identifier: MIT */
#include "core/db_clock.h"

enum {
  JUMP_US = 500 * 1000,
  CALM_US = 2 * 1000 * 1000, /* a clock that is slewed by more than 200 ppm contradicts earlier answers more often */
  STEADY = 5000,             /* clocks drift apart by less than 1/5000, 200 ppm, */
  SLEWED = 5,                /* and by less than 1/5 where both are slewed by a twelfth */
};

static int64_t drift_of(const struct db_clock *clock) { return clock->slews ? SLEWED : STEADY; }

static int64_t low_of(const struct db_clock *clock) {
  return clock->slews ? clock->slewed.low_us : clock->steady.low_us;
}

/* How far what is told lies outside the bounds; 0 = within. */
static int64_t outside(const struct offset_bounds *bounds, const struct offset_bounds *told) {
  int64_t above = told->low_us - bounds->high_us, below = bounds->low_us - told->high_us;
  return above > 0 ? above : below > 0 ? below : 0;
}

/* Widens the bounds by the drift since the last answer, and narrows them by this one. Bounds that contradict each other
 * mean that a clock was set, is slewed or stood still: they start anew. Returns by how much they do. */
static int64_t narrow(struct offset_bounds *bounds, int64_t drift_us, const struct offset_bounds *told) {
  bounds->low_us -= drift_us;
  bounds->high_us += drift_us;
  int64_t by_us = outside(bounds, told);
  if (by_us || told->low_us > bounds->low_us)
    bounds->low_us = told->low_us;
  if (by_us || told->high_us < bounds->high_us)
    bounds->high_us = told->high_us;
  return by_us;
}

bool db_clock_told(struct db_clock *clock, int64_t db_now_us, int64_t before_us, int64_t after_us) {
  const struct offset_bounds told = {.low_us = db_now_us - after_us, .high_us = db_now_us - before_us};
  const int64_t age_us = after_us - clock->seen_us;
  bool first = clock->seen_us == 0;
  int64_t by_us = 0;
  if (first) {
    clock->steady = clock->slewed = told;
  } else {
    by_us = narrow(&clock->steady, age_us / STEADY + 1, &told);
    (void)narrow(&clock->slewed, age_us / SLEWED + 1, &told);
  }
  clock->seen_us = after_us;
  if (first || by_us)
    clock->calm_at_us = after_us + CALM_US;
  clock->slews = after_us < clock->calm_at_us;
  return by_us > JUMP_US;
}

int64_t db_clock_offset_us(const struct db_clock *clock) {
  return clock->steady.low_us + (clock->steady.high_us - clock->steady.low_us) / 2;
}

int64_t db_clock_surely_us(const struct db_clock *clock, int64_t now_us) {
  return now_us + low_of(clock) - (now_us - clock->seen_us) / drift_of(clock);
}

int64_t db_clock_reaches_us(const struct db_clock *clock, int64_t db_us) {
  int64_t wait_us = db_us - low_of(clock) - clock->seen_us, drift = drift_of(clock);
  return clock->seen_us + (wait_us > 0 ? wait_us + wait_us / (drift - 1) + 1 : wait_us);
}
