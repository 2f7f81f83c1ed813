/* SPDX-License-Identifier: MIT
 *
 * admin/body.h - reading JSON bodies of commands. A refusal answers the request at once.
 */
#ifndef ADMIN_BODY_H
#define ADMIN_BODY_H

#include "admin/http.h"
#include "core/operator.h"

enum { BODY_ACTOR_MAX = 64, BODY_REASON_MAX = OPERATOR_REASON_MAX, BODY_FILTER_MAX = 1024 };

/* Who asks and why: for the audit. Texts belong to the JSON object. */
struct motive {
  const char *actor;  /* "api" unless given */
  const char *reason; /* "" unless given */
};

/* The body as a JSON object whose members are all among `known` (NULL-terminated); an empty body is an empty object.
 * NULL = the response says what is wrong. The caller owns the reference. */
MUSTCHECK json_t *body_object(const struct request *request, const char *const *known, struct response *response);
MUSTCHECK bool body_motive(const json_t *object, struct motive *motive, struct response *response);
/* A text of at most max bytes, "" unless given; it belongs to the JSON object. */
MUSTCHECK bool body_text(const json_t *object, const char *key, size_t max, const char **text,
                         struct response *response);
/* RFC 3339 with any offset to microseconds since 1970; false when it is not one. Pure. */
MUSTCHECK bool body_parse_time(const char *text, int64_t *us);

#endif
