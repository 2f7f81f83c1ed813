/* SPDX-License-Identifier: MIT
 *
 * core/scheduler_clock.c - the database's clock, which all due times are measured by, as seen from here.
 *
 * Every statement that tells the time bounds the distance between its clock and our monotonic one: the server stamped
 * it between sending and receiving. The bounds of many statements meet within some 10 us.
 *
 * @thread scheduler, except scheduler_db_now_us(), which any thread may call
 */
#include "core/base/clock.h"
#include "core/scheduler.h"

enum { JUMP_US = 500 * 1000 }; /* a lease that was granted before is checked first */
enum { DRIFT = 5000 };         /* clocks drift apart by less than 1/5000, 200 ppm: by so much the bounds widen */

int64_t scheduler_db_now_us(const struct scheduler *scheduler) {
  return clock_mono_us() + atomic_load_explicit(&scheduler->db_offset_us, memory_order_relaxed);
}

int64_t scheduler_db_surely_us(const struct scheduler *s) {
  int64_t now = clock_mono_us();
  return now + s->offset_low_us - (now - s->clock_seen_us) / DRIFT;
}

void scheduler_track_clock(struct scheduler *s, int64_t db_now_us, int64_t before_us, int64_t after_us) {
  int64_t low = db_now_us - after_us, high = db_now_us - before_us;
  int64_t drift = (after_us - s->clock_seen_us) / DRIFT + 1;
  bool first = s->clock_seen_us == 0;
  s->clock_seen_us = after_us;
  s->offset_low_us -= drift;
  s->offset_high_us += drift;
  /* Bounds that contradict each other mean that a clock was set, or that one stood still: start anew. */
  if (!first && (low > s->offset_high_us + JUMP_US || high < s->offset_low_us - JUMP_US))
    leases_doubt(s->leases, clock_boot_us());
  if (first || low > s->offset_high_us || high < s->offset_low_us) {
    s->offset_low_us = low;
    s->offset_high_us = high;
  }
  if (low > s->offset_low_us)
    s->offset_low_us = low;
  if (high < s->offset_high_us)
    s->offset_high_us = high;
  int64_t offset = s->offset_low_us + (s->offset_high_us - s->offset_low_us) / 2;
  atomic_store_explicit(&s->db_offset_us, offset, memory_order_relaxed);
  set_gauge(&s->metrics->db_clock_offset_us, offset + clock_mono_us() - clock_wall_us());
}
