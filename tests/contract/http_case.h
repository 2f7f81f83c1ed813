/* SPDX-License-Identifier: MIT
 *
 * tests/contract/http_case.h - one request through plugins/http under the fake host, for tests of single cases.
 */
#ifndef TESTS_CONTRACT_HTTP_CASE_H
#define TESTS_CONTRACT_HTTP_CASE_H

#include <duebox/plugin.h>

#include "http_options.h"
#include "tests/support/fake_host.h"

enum { HTTP_CASE_TIMEOUT_MS = 15000, HTTP_CASE_LIMIT_MS = 30000, HTTP_CASE_URL = 256 };

/* The defaults, and loopback allowed. */
struct http_options http_case_options(void);
/* The defaults, to scheme://host:port/path; url is written and must live as long as the route. */
struct http_route http_case_route(const char *scheme, const char *host, int port, const char *path,
                                  char url[HTTP_CASE_URL]);
/* An instance with room for four tasks. */
struct fake_host *http_case_open(const struct http_options *options);
/* Sends one task, with a message id of its own in the whole run, and waits for its outcome. timeout_ms 0 = the default
 * above. */
struct fake_outcome http_case_send(struct fake_host *host, const struct http_route *route, uint32_t timeout_ms);

#endif
