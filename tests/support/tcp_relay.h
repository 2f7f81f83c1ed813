/* SPDX-License-Identifier: MIT
 *
 * tests/support/tcp_relay.h - stands between a plugin under test and a real server, and breaks what passes.
 *
 * Listens on a free port of 127.0.0.1 and passes bytes on both ways, on a thread of its own. The verbs may be called
 * from any thread and have taken effect when they return.
 */
#ifndef TESTS_SUPPORT_TCP_RELAY_H
#define TESTS_SUPPORT_TCP_RELAY_H

#include <stdbool.h>

struct tcp_relay;

/* Starts a relay to 127.0.0.1:port; fails the test when it cannot. */
struct tcp_relay *tcp_relay_start(int port);
void tcp_relay_stop(struct tcp_relay *relay);

int tcp_relay_port(const struct tcp_relay *relay);

/* false: closes everything and refuses new connections. true: serves again. */
void tcp_relay_reachable(struct tcp_relay *relay, bool up);

/* While muted, what the client sends still reaches the server, and nothing comes back. */
void tcp_relay_mute(struct tcp_relay *relay, bool muted);

/* While frozen, nothing passes in either direction and nothing is closed: a half-open connection. */
void tcp_relay_freeze(struct tcp_relay *relay, bool frozen);

#endif
