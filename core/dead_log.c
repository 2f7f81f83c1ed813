/* SPDX-License-Identifier: MIT */
#include "core/dead_log.h"

#include "core/base/clock.h"
#include "core/base/log.h"

enum { LINE_US = 1000 * 1000, AT_ONCE = 50 };

bool dead_log_due(struct dead_log *log, int64_t now_us, uint64_t *unsaid) {
  if (log->paid_us < now_us)
    log->paid_us = now_us;
  if (log->paid_us - now_us > (AT_ONCE - 1) * (int64_t)LINE_US) {
    log->unsaid++;
    return false;
  }
  log->paid_us += LINE_US;
  *unsaid = log->unsaid;
  log->unsaid = 0;
  return true;
}

void dead_log_write(struct dead_log *log, const char *route, const char *message_id, uint32_t attempt,
                    const char *error_class) {
  uint64_t unsaid;
  if (!dead_log_due(log, clock_mono_us(), &unsaid))
    return;
  const char *class = error_class ? error_class : "-";
  if (unsaid)
    log_info("DUEBOX-TASK-DEAD", "route=%s message_id=%s attempt=%u error_class=%.64s unsaid=%llu", route, message_id,
             attempt, class, (unsigned long long)unsaid);
  else
    log_info("DUEBOX-TASK-DEAD", "route=%s message_id=%s attempt=%u error_class=%.64s", route, message_id, attempt,
             class);
}
