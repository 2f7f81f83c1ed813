/* SPDX-License-Identifier: MIT
 *
 * core/dead_log.h - one line for each task that ended dead, so that the log says which and why.
 *
 * Dead is rare. Where it is not, because a destination refuses everything, fifty lines come at once and then one a
 * second, which says how many had none; duebox_task_events_total counts them all.
 */
#ifndef CORE_DEAD_LOG_H
#define CORE_DEAD_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/attr.h"

/* Zeroed at first; one thread at a time. */
struct dead_log {
  int64_t paid_us; /* monotonic: up to when the lines that were written are paid for, one a second */
  uint64_t unsaid; /* tasks without a line since the last one */
};

/* Whether there is room for a line now; *unsaid is how many had none before it. Pure. */
MUSTCHECK bool dead_log_due(struct dead_log *log, int64_t now_us, uint64_t *unsaid);

/* error_class: NULL = none. */
void dead_log_write(struct dead_log *log, const char *route, const char *message_id, uint32_t attempt,
                    const char *error_class);

#endif
