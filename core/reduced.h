/* SPDX-License-Identifier: MIT
 *
 * core/reduced.h - outcomes that were written without something that the server refuses, an alert or the history: each
 * is counted, and said seldom enough for a server that refuses all of them.
 */
#ifndef CORE_REDUCED_H
#define CORE_REDUCED_H

#include "core/base/log_repeat.h"
#include "core/metrics.h"
#include "core/store.h"

/* form: what was written, not DECISION_WHOLE; why: what the server said. The caller's thread owns the log_repeat. */
void reduced_note(struct log_repeat *said, struct engine_metrics *metrics, const char *route, const char *message_id,
                  enum decision_form form, const char *why);

#endif
