/* SPDX-License-Identifier: MIT
 *
 * cli/times.h - times as text. UTC only: a local zone never enters.
 */
#ifndef CLI_TIMES_H
#define CLI_TIMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/attr.h"

enum { TIME_TEXT_MAX = 40 };

/* RFC 3339 with microseconds: "2026-01-31T08:00:00.000000Z". */
void rfc3339_print(int64_t us, char out[TIME_TEXT_MAX]);

/* Reads "2026-01-31", "2026-01-31 08:00[:00[.123456]]", with T or blank, with Z, +hh:mm or nothing (UTC). */
MUSTCHECK bool rfc3339_parse(const char *text, int64_t *us);

/* "3 d 4 h", "29 min 3 s", "1.250 s", "12 ms", signless. Returns out. */
const char *span_print(int64_t us, char *out, size_t cap);

#endif
