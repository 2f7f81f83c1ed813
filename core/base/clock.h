/* SPDX-License-Identifier: MIT
 *
 * core/base/clock.h - reading time. Microseconds everywhere inside; the unit is in the name.
 *
 * Monotonic time measures and waits; what another machine counts too, a lease, is measured by boot time; wall time is
 * only for logs and HTTP signatures. When a task is due is decided by the database's clock, which the scheduler tracks
 * (core/scheduler.c); nothing compares due times with wall time here.
 */
#ifndef CORE_BASE_CLOCK_H
#define CORE_BASE_CLOCK_H

#include <stdint.h>

int64_t clock_mono_us(void); /* CLOCK_MONOTONIC */
int64_t clock_boot_us(void); /* CLOCK_BOOTTIME: goes on while the machine is suspended */
int64_t clock_wall_us(void); /* CLOCK_REALTIME, since 1970 */

/* The same moment by both clocks. They part when the machine is suspended. */
struct instant {
  int64_t mono_us, boot_us;
};
struct instant clock_instant(void);

static inline int64_t earlier(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t later(int64_t a, int64_t b) { return a > b ? a : b; }

#endif
