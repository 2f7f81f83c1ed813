/* SPDX-License-Identifier: MIT
 *
 * core/dead_log.h - one line for each task that ended dead, so that the log says which and why.
 *
 * Dead is rare. Where it is not, because a destination refuses everything, fifty lines come at once and then one a
 * second, which says how many had none; duebox_task_events_total counts them all.
 */
#ifndef CORE_DEAD_LOG_H
#define CORE_DEAD_LOG_H

#include <stdint.h>

#include "core/base/log_repeat.h"

/* error_class: NULL = none. */
void dead_log_write(struct log_quota *quota, const char *route, const char *message_id, uint32_t attempt,
                    const char *error_class);

#endif
