/* SPDX-License-Identifier: MIT
 *
 * core/task_time.h - which times a task may have: a rule of the table, for whoever writes them. Applications are held
 * to it by the table's CHECKs; a daemon's own sessions switch these off, so that it can end rows that break them.
 */
#ifndef CORE_TASK_TIME_H
#define CORE_TASK_TIME_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/attr.h"
#include "core/base/err.h"

/* Whether due_at or expires_at may be `us` microseconds since 1970: 2000-01-01 to the end of 2199. `what` begins the
 * error's text: "a due time". */
MUSTCHECK bool task_time_valid(int64_t us, const char *what, struct err *err);

#endif
