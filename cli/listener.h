/* SPDX-License-Identifier: MIT
 *
 * cli/listener.h - whose process is at the other end of a connection within this machine.
 *
 * While a daemon is down any user may listen on its port of loopback. The kernel says whose the sockets are
 * (/proc/net/tcp, tcp6); where it does not, as for a port that leads out of this network namespace, nobody is
 * suspected.
 */
#ifndef CLI_LISTENER_H
#define CLI_LISTENER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* An end of a TCP connection: an address as text, and a port. */
struct listener_end {
  const char *ip;
  uint16_t port;
};

/* Whether somebody else than root, our own user and `owner` listens at peer, or has accepted the connection that is
 * made from self: *stranger is who. Peers other than loopback are not looked at. */
bool listener_is_strange(struct listener_end peer, struct listener_end self, uid_t owner, uid_t *stranger);

#endif
