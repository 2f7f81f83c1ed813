/* SPDX-License-Identifier: MIT
 *
 * http_outcome.h - what an HTTP status or a libcurl code means for the task: two tables as data.
 *
 * Pure. The rule behind the tables: a status is the consumer's word; without one, what counts is whether a byte of the
 * request had left. Nothing sent = UNAVAILABLE (no attempt burnt); anything sent = UNKNOWN (counts).
 */
#ifndef PLUGINS_HTTP_OUTCOME_H
#define PLUGINS_HTTP_OUTCOME_H

#include <stdbool.h>

#include <curl/curl.h>
#include <duebox/outcome.h>

#include "http_options.h"

#define HTTP_ERROR_CLASS 32 /* room for an error class, "http.503" */

enum { HTTP_PROXY_WANTS_PASSWORD = 407 };

struct http_verdict {
  enum duebox_outcome_class cls;
  enum duebox_scope scope;
  enum duebox_answer answer;
  bool blameless;                     /* UNKNOWN: the task had no part in it */
  char error_class[HTTP_ERROR_CLASS]; /* "" = none */
};

/* The final status of a complete response, with the route's own lists (done_on, later_on, retry_on, reject_on): an
 * exact code goes before a class such as 4xx. awaited: a later answer has a way to come. Without one 202 is as good as
 * 200, and 409 and 425 fail as other 4xx do; who lists a status in later_on knows of a way. */
struct http_verdict http_verdict_of_status(long status, const struct http_route *route, bool awaited);

/* A transfer that ended without a complete response. sent: at least one byte of the request had left.
 * by_proxy: a proxy is configured, so failing to connect concerns every route of the instance. */
struct http_verdict http_verdict_of_code(CURLcode code, bool sent, bool by_proxy);

/* The status with which a proxy itself refused: to open a way to an endpoint of https://, or to take a request for one
 * of http:// to it. The endpoint has got nothing. */
struct http_verdict http_verdict_of_proxy(long status);
struct http_verdict http_verdict_of_407(void);

/* How far the trouble of CURLE_PROXY reaches, by CURLINFO_PROXY_ERROR: a SOCKS proxy that cannot reach one endpoint
 * reaches others. */
enum duebox_scope http_scope_of_socks(CURLproxycode said);

/* "404" or "4xx", 200 to 599. */
bool http_status_item_valid(const char *item);

#endif
