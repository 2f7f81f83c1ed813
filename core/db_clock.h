/* SPDX-License-Identifier: MIT
 *
 * core/db_clock.h - the database's clock, as far as its answers tell: bounds of its distance from our monotonic one.
 *
 * Whoever answers has stamped its time between sending and receiving, so each answer bounds the distance from both
 * sides, and the bounds of many meet within some 10 us. Between answers they widen by what clocks drift apart. One that
 * is being slewed to the right time drifts by a twelfth (chrony's default maxslewrate), where two that are left alone
 * drift by less than 200 ppm. So there are bounds for both: the narrow ones count, unless an answer has contradicted
 * them lately. Pure; all times in microseconds.
 */
#ifndef CORE_DB_CLOCK_H
#define CORE_DB_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

struct offset_bounds {
  int64_t low_us, high_us;
};

struct db_clock {
  int64_t seen_us;                     /* monotonic: when it last answered; 0 = never */
  struct offset_bounds steady, slewed; /* of its time minus ours, at seen_us, if nobody slews either, and in any case */
  int64_t calm_at_us;                  /* monotonic: until then it may be slewed, as long as nothing contradicts */
  bool slews;                          /* as of seen_us */
};

/* A statement that was sent and answered at these monotonic times told its time. True: it has jumped since, by half a
 * second at least. */
bool db_clock_told(struct db_clock *clock, int64_t db_now_us, int64_t before_us, int64_t after_us);
/* The distance, as far as is known. */
int64_t db_clock_offset_us(const struct db_clock *clock);
/* At now_us (monotonic) it is at least this time there. */
int64_t db_clock_surely_us(const struct db_clock *clock, int64_t now_us);
/* Monotonic: when it surely is db_us there, if no answer comes meanwhile. */
int64_t db_clock_reaches_us(const struct db_clock *clock, int64_t db_us);

#endif
