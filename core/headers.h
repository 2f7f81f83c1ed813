/* SPDX-License-Identifier: MIT
 *
 * core/headers.h - the column `headers` of a task, to what a plugin sees. Pure.
 */
#ifndef CORE_HEADERS_H
#define CORE_HEADERS_H

#include <duebox/task.h>
#include <stdbool.h>
#include <stddef.h>

#include "core/base/attr.h"
#include "core/base/err.h"

enum { HEADERS_MAX = 64, HEADERS_TEXT_MAX = 16 * 1024 };

/* Whether only duebox sets headers of this name (NUL-terminated). */
bool headers_is_reserved(const char *name);

/* Parses a JSON object whose values are strings, or numbers and booleans, which count as their text. Names that begin
 * with duebox-, in any case, are duebox's own: such a header is left out. *out is one
 * allocation that holds names and values too, to be freed with free(), or NULL where there are none ("", "{}", "null"):
 * then nothing was allocated. Refused with a text that names the header: other values, empty names, CR, LF or NUL in a
 * name or value (header injection), a name that comes twice, invalid UTF-8, more than HEADERS_MAX headers or
 * HEADERS_TEXT_MAX bytes. */
MUSTCHECK bool headers_parse(struct duebox_bytes json, struct duebox_header **out, size_t *count, struct err *err);

#endif
