/* SPDX-License-Identifier: MIT */
#include "core/base/clock.h"

#include <time.h>

static int64_t read_us(clockid_t id) {
  struct timespec ts;
  clock_gettime(id, &ts);
  return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

int64_t clock_mono_us(void) { return read_us(CLOCK_MONOTONIC); }
int64_t clock_boot_us(void) { return read_us(CLOCK_BOOTTIME); }
struct instant clock_instant(void) {
  int64_t boot_us = clock_boot_us();
  return (struct instant){.mono_us = clock_mono_us(), .boot_us = boot_us};
}
int64_t clock_wall_us(void) { return read_us(CLOCK_REALTIME); }
