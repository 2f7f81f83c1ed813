/* SPDX-License-Identifier: MIT
 *
 * http_request.h - from a task and its route to a request: URL and header lines. The body is the payload, in place.
 *
 * Pure: no socket, no clock (the time is given), no libcurl. A request owns one growing text that is used again for the
 * next task, so a steady state allocates nothing. Header lines are in the form libcurl takes: "Name: value", or "Name;"
 * for an empty value.
 */
#ifndef PLUGINS_HTTP_REQUEST_H
#define PLUGINS_HTTP_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <duebox/plugin.h>

#include "http_options.h"

/* Bytes: of a task's header lines, and of its checkpoint, which has a line of its own and three characters for a byte
 * at worst. libcurl takes less than 1 MiB of them all. */
#define HTTP_REQUEST_HEADERS_MAX (256 * 1024)
#define HTTP_REQUEST_CHECKPOINT_MAX (240 * 1024)
#define HTTP2_REQUEST_CHECKPOINT_MAX (12 * 1024) /* nghttp2 sends headers of 64 KiB, the URL included */
#define HTTP_URL_MAX 8192                        /* bytes of an expanded URL; RFC 9110 section 4.1 asks for 8000 */

struct http_request {
  char *text; /* URL, then header lines, each NUL-terminated */
  size_t len, cap;
  size_t headers_at;     /* where the first header line begins */
  size_t checkpoint_len; /* of its line */
  size_t header_count;
  bool short_of_memory;
  bool callback; /* the receiver is told where to answer later */
};

/* Why a task cannot be sent. */
struct http_problem {
  enum duebox_outcome_class cls; /* REJECTED, or UNAVAILABLE when memory is short */
  const char *error_class;
  char text[512];
};

/* Builds the request. expand and ctx as in struct duebox_host; now_s is the time of this attempt in Unix seconds.
 * False: problem says why. The task and the route are not referred to afterwards. */
__attribute__((warn_unused_result)) bool
http_request_build(struct http_request *request, const struct duebox_task *task, const struct http_route *route,
                   const struct duebox_host *host, int64_t now_s, struct http_problem *problem);
void http_request_free(struct http_request *request);

static inline const char *http_request_url(const struct http_request *request) { return request->text; }

/* The header lines one after the other: pass NULL for the first; NULL after the last. */
const char *http_request_next_header(const struct http_request *request, const char *line);

/* A token of RFC 9110 section 5.6.2. */
bool http_header_name_valid(const char *name);
/* No control character but the tab (RFC 9110 section 5.5). */
bool http_header_value_valid(const char *value, size_t len);
/* Names that neither an application nor a route may set: framing and connection (RFC 9110 section 7.6.1), what this
 * client speaks (Expect, Accept-Encoding), and the prefixes webhook-, duebox- and proxy-. */
bool http_header_reserved(const char *name);

/* RFC 3339 in UTC with microseconds: 2026-01-02T03:04:05.123456Z. */
#define HTTP_TIME_CAP 40
void http_format_time(int64_t us, char out[HTTP_TIME_CAP]);

#endif
