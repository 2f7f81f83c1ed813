/* SPDX-License-Identifier: MIT
 *
 * tests/contract/http_server.h - a well-behaved receiver of hooks inside the test, on libmicrohttpd's own thread.
 *
 * Answers 200, or 404 below /missing, and keeps every request. A mutex guards what both threads see.
 */
#ifndef TESTS_CONTRACT_HTTP_SERVER_H
#define TESTS_CONTRACT_HTTP_SERVER_H

#include <stdbool.h>

#include "tests/contract/sink_contract.h"

struct http_server;

struct http_server *http_server_start(void);
void http_server_stop(struct http_server *server);
int http_server_port(const struct http_server *server);
/* Off the network (connections closed, port refused) and back on the same port. */
void http_server_set_reachable(struct http_server *server, bool up);
/* While held, requests are taken and not answered. */
void http_server_hold(struct http_server *server, bool held);
/* What has arrived, in order; valid until the next call. */
const struct contract_message *http_server_received(struct http_server *server, size_t *count);

#endif
