/* SPDX-License-Identifier: MIT
 *
 * tests/support/reserved_port.h - a free port of 127.0.0.1 that stays this test's own, also while no server listens.
 *
 * Otherwise the kernel gives it to the next one who asks for any port: another test, or a client that knocks at the
 * closed port, which then talks to itself. A server that sets SO_REUSEADDR, as they all do, can listen on it again and
 * again; without one, connections are refused.
 */
#ifndef TESTS_SUPPORT_RESERVED_PORT_H
#define TESTS_SUPPORT_RESERVED_PORT_H

/* Returns a descriptor; closing it ends the reservation. Fails the test when there is none to be had. */
int reserved_port_open(int *port);

#endif
