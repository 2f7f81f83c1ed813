/* SPDX-License-Identifier: MIT
 *
 * plugins/kafka/kafka_common.c - see kafka_common.h.
 */
#include "kafka_common.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>

bool kafka_fail(struct duebox_error *err, const char *fmt, ...) {
  if (err) {
    va_list args;
    va_start(args, fmt);
    vsnprintf(err->text, sizeof(err->text), fmt, args);
    va_end(args);
  }
  return false;
}

int64_t kafka_now_us(void) {
  struct timespec ts;
  clock_gettime(CLOCK_MONOTONIC, &ts);
  return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}
