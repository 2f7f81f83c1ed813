/* SPDX-License-Identifier: MIT
 *
 * tests/support/own_time.c - the monotonic clock less the time that a thread waited on the run queue, as
 * /proc/thread-self/schedstat counts it: nanoseconds run, nanoseconds waited, times run.
 */
#include "tests/support/own_time.h"

#include <stdio.h>
#include <time.h>

int64_t own_time_starved_ms(void) {
  long long waited_ns = 0;
  FILE *file = fopen("/proc/thread-self/schedstat", "re");
  if (!file)
    return 0;
  if (fscanf(file, "%*d %lld", &waited_ns) != 1)
    waited_ns = 0;
  fclose(file);
  return waited_ns / 1000000;
}

int64_t own_time_ms(void) {
  struct timespec ts;
  clock_gettime(CLOCK_MONOTONIC, &ts);
  return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000 - own_time_starved_ms();
}
