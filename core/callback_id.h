/* SPDX-License-Identifier: MIT
 *
 * core/callback_id.h - a message id as a segment of a callback URL, and what stands there for its route. Pure.
 *
 * Ids may hold any visible ASCII, and clients and proxies decode and normalise paths: not even an encoded slash, or a
 * segment that is "..", comes through everywhere. An id that might change on its way is "~" and its bytes in
 * hexadecimal.
 */
#ifndef CORE_CALLBACK_ID_H
#define CORE_CALLBACK_ID_H

#include <stdbool.h>

#include "core/base/attr.h"
#include "core/record.h"

/* Writes the segment, at most twice as long as the id and two bytes, and a NUL; returns where that is. */
char *callback_id_write(const char *id, char *at);
/* The id of a segment that has been percent-decoded: of older URLs it is the id itself. False: longer than any id. */
MUSTCHECK bool callback_id_read(const char *segment, char id[RECORD_ID_MAX + 1]);
/* By what the results of a route wait apart from those of others: 1 to 65535. Two routes may have the same. */
uint32_t callback_lane(const char *route);

#endif
