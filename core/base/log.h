/* SPDX-License-Identifier: MIT
 *
 * core/base/log.h - one log line: a level, a stable id, a sentence with key=value pairs.
 *
 * Goes to stderr as logfmt (terminal), JSON lines, or with a syslog "<N>" prefix under systemd. The writer's settings
 * are process-wide and set once before threads start, except the level, which is atomic. Never waits for whoever reads
 * a pipe, a terminal or a socket: a line that cannot be written at once, to a full disk for instance, is dropped, and
 * DUEBOX-LOG-DROPPED says before the next one how many were. A line has at most PIPE_BUF bytes (4096); longer texts are
 * cut. Control characters in the text are escaped (terminal injection). Secrets never come here. Ids look like
 * DUEBOX-SHARD-ACQUIRED; docs list them; operators grep for them.
 */
#ifndef CORE_BASE_LOG_H
#define CORE_BASE_LOG_H

#include "core/base/attr.h"

enum log_level { LOG_LEVEL_ERROR = 0, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };
enum log_format { LOG_FORMAT_AUTO = 0, LOG_FORMAT_LOGFMT, LOG_FORMAT_JSON };

void log_setup(enum log_level level, enum log_format format, int fd);
void log_set_level(enum log_level level);
void log_set_format(enum log_format format);
void log_write(enum log_level level, const char *id, const char *fmt, ...) PRINTF(3, 4);

#define log_error(id, ...) log_write(LOG_LEVEL_ERROR, id, __VA_ARGS__)
#define log_warn(id, ...) log_write(LOG_LEVEL_WARN, id, __VA_ARGS__)
#define log_info(id, ...) log_write(LOG_LEVEL_INFO, id, __VA_ARGS__)
#define log_debug(id, ...) log_write(LOG_LEVEL_DEBUG, id, __VA_ARGS__)

#endif
