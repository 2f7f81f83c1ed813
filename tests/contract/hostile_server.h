/* SPDX-License-Identifier: MIT
 *
 * tests/contract/hostile_server.h - starts tests/support/http_hostile.py in a folder of its own and ends it again.
 */
#ifndef TESTS_CONTRACT_HOSTILE_SERVER_H
#define TESTS_CONTRACT_HOSTILE_SERVER_H

#include <stddef.h>

struct hostile_server;

/* Fails the test when the server does not come up within a minute. */
struct hostile_server *hostile_server_start(void);
void hostile_server_stop(struct hostile_server *server);

/* The port of a listener by its name; fails the test when there is none. */
int hostile_server_port(const struct hostile_server *server, const char *name);
/* The path of a file in the server's folder, such as "ca.pem"; valid until the next call. */
const char *hostile_server_file(struct hostile_server *server, const char *name);
/* How many requests with this message id have arrived. */
size_t hostile_server_copies(struct hostile_server *server, const char *id);
/* The client has read the answer of /late-second-answer or /close-when-idle: now comes the rest. */
void hostile_server_go_on(struct hostile_server *server);

#endif
