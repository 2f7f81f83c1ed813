/* SPDX-License-Identifier: MIT
 *
 * core/result_origin.h - where a result record came from, as the text that the quarantine keeps, and what that text
 * says of the record's task when it is replayed. Pure.
 *
 * "results[2]@17", the place as its plugin calls it; "results[2]@17 for ID" where a correlation id came with it;
 * "/callback/ID/ATTEMPT", a callback URL without its token. It is a public contract (docs/OPERATIONS.md): what is
 * written here is read by later versions.
 */
#ifndef CORE_RESULT_ORIGIN_H
#define CORE_RESULT_ORIGIN_H

#include "core/record.h"

/* Sources of records that no entry of `results` has brought. Those of entries are "PLUGIN#N". */
#define SOURCE_CALLBACK "callback"
#define SOURCE_ANSWER "answer" /* the answer to a call; its origin is the route, and it has been dealt with */

/* Why result_origin_road() is false. */
extern const char result_origin_settled[];

enum { RESULT_ORIGIN_SIZE = 256 };

/* Of a place that is too long the end is kept: the offset is there. id: the correlation id, which may be an id of a
 * task (record_is_id()); NULL = none came. */
void result_origin_write(char out[RESULT_ORIGIN_SIZE], const char *place, const char *id);
/* Of a callback URL. */
void result_origin_callback(char out[RESULT_ORIGIN_SIZE], const char *id, uint32_t attempt);

/* What is known of a kept record's task by the way it came, as the source knew it: *road, which points to id. False:
 * there is nothing left to apply of a record from there. */
MUSTCHECK bool result_origin_road(const char *source, const char *origin, struct record_road *road,
                                  char id[RECORD_ID_MAX + 1]);

#endif
