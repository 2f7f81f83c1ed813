/* SPDX-License-Identifier: MIT
 *
 * core/template.h - texts with placeholders for values of a task: topics, keys, URLs. Pure.
 *
 * {task_key} {route} {message_id} {priority} {header.NAME}; "{{" and "}}" stand for one brace. An absent key or header
 * expands to nothing. Only what is substituted is escaped, never the text around it.
 */
#ifndef CORE_TEMPLATE_H
#define CORE_TEMPLATE_H

#include <duebox/plugin.h>
#include <stdbool.h>
#include <stddef.h>

#include "core/base/attr.h"
#include "core/base/err.h"

/* Says whether every placeholder is known and closed; the text of err has no place in front. */
MUSTCHECK bool template_check(const char *tmpl, struct err *err);

/* Whether tasks of one route differ in its expansion. */
bool template_varies(const char *tmpl);

/* Writes the expansion to out (cap bytes, NUL-terminated when cap > 0) and returns the length it needs without the
 * NUL, like snprintf. tmpl has passed template_check; what is no placeholder is copied as it stands. */
size_t template_expand(const char *tmpl, const struct duebox_task *task, enum duebox_escape escape, char *out,
                       size_t cap);

#endif
