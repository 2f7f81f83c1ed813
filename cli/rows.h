/* SPDX-License-Identifier: MIT
 *
 * cli/rows.h - rows of the database (core/operator.h) as JSON objects, which all output is made from.
 */
#ifndef CLI_ROWS_H
#define CLI_ROWS_H

#include <jansson.h>

#include "core/operator.h"

/* Times become RFC 3339, ids strings. Bytes that are UTF-8 become a string; others "hex:.." for people, or for programs
 * a member `<name>_base64` instead of `<name>`. NULL without memory. */
json_t *row_json(const struct field *fields, size_t count, bool for_people);

/* The member as microseconds, when it is a time; 0 otherwise. */
int64_t row_time(const json_t *row, const char *key);

#endif
