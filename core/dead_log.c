/* SPDX-License-Identifier: MIT */
#include "core/dead_log.h"

#include "core/base/clock.h"
#include "core/base/log.h"

void dead_log_write(struct log_quota *quota, const char *route, const char *message_id, uint32_t attempt,
                    const char *error_class) {
  uint64_t unsaid;
  if (!log_quota_due(quota, clock_mono_us(), &unsaid))
    return;
  const char *class = error_class ? error_class : "-";
  if (unsaid)
    log_info("DUEBOX-TASK-DEAD", "route=%s message_id=%s attempt=%u error_class=%.64s unsaid=%llu", route, message_id,
             attempt, class, (unsigned long long)unsaid);
  else
    log_info("DUEBOX-TASK-DEAD", "route=%s message_id=%s attempt=%u error_class=%.64s", route, message_id, attempt,
             class);
}
