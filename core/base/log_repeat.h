/* SPDX-License-Identifier: MIT
 *
 * core/base/log_repeat.h - what comes again and again: said at once, and then seldom, with the count.
 *
 * A text is said when it comes first, again after ten seconds, then in growing steps, at last once a minute. One that
 * has not come for a minute is new. A few texts are known at a time, so that two that take turns are seldom as well.
 * Texts that differ each time have a quota: fifty lines at once, and then one a second.
 */
#ifndef CORE_BASE_LOG_REPEAT_H
#define CORE_BASE_LOG_REPEAT_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/attr.h"
#include "core/base/log.h"

enum { LOG_REPEAT_TEXTS = 4 };

/* How many lines one place may write. Zeroed at first; one thread at a time. */
struct log_quota {
  int64_t paid_us; /* monotonic: up to when the lines that were written are paid for, one a second */
  uint64_t unsaid; /* lines that found no room since the last one */
};

/* Whether there is room for a line now; *unsaid is how many had none before it. Pure. */
MUSTCHECK bool log_quota_due(struct log_quota *quota, int64_t now_us, uint64_t *unsaid);

/* One place that logs. Zeroed at first; its owner sees to it that one thread uses it at a time. */
struct log_repeat {
  struct {
    uint64_t text; /* hash; 0 = free */
    uint64_t unsaid;
    int64_t came_us, said_us, gap_us; /* monotonic */
  } known[LOG_REPEAT_TEXTS];
  struct log_quota quota;
  uint64_t others; /* of other texts had no room before the last line */
};

/* Whether this text is to be said now; *unsaid is how often it came since it was said last. Pure. */
MUSTCHECK bool log_repeat_due(struct log_repeat *repeat, const char *text, int64_t now_us, uint64_t *unsaid);

/* The same, without the quota. */
MUSTCHECK bool log_repeat_comes(struct log_repeat *repeat, const char *text, int64_t now_us, uint64_t *unsaid);

/* As log_write(), where it is due. */
void log_repeated(struct log_repeat *repeat, enum log_level level, const char *id, const char *fmt, ...) PRINTF(4, 5);

#endif
