/* SPDX-License-Identifier: MIT
 *
 * core/scheduler_clock.c - the database's clock, which all due times are measured by, as the scheduler's statements
 * tell it.
 *
 * @thread scheduler, except scheduler_db_now_us(), which any thread may call
 */
#include "core/base/clock.h"
#include "core/scheduler.h"

int64_t scheduler_db_now_us(const struct scheduler *scheduler) {
  return clock_mono_us() + atomic_load_explicit(&scheduler->db_offset_us, memory_order_relaxed);
}

int64_t scheduler_db_surely_us(const struct scheduler *s) { return db_clock_surely_us(&s->db_clock, clock_mono_us()); }

void scheduler_track_clock(struct scheduler *s, int64_t db_now_us, int64_t before_us, int64_t after_us) {
  if (db_clock_told(&s->db_clock, db_now_us, before_us, after_us))
    leases_doubt(s->leases, clock_boot_us()); /* a lease that was granted before is checked first */
  int64_t offset = db_clock_offset_us(&s->db_clock);
  atomic_store_explicit(&s->db_offset_us, offset, memory_order_relaxed);
  set_gauge(&s->metrics->db_clock_offset_us, offset + clock_mono_us() - clock_wall_us());
}
