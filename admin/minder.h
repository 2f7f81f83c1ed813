/* SPDX-License-Identifier: MIT
 *
 * admin/minder.h - deadlines of connections: who is too slow is cut off, who guessed a token waits.
 *
 * libmicrohttpd's own time-out counts from the last byte, so a client that sends a byte every nine seconds would keep
 * its connection for ever. Here each connection has one deadline for its next whole step (request received, response
 * taken). When it passes, the socket is shut down and libmicrohttpd closes the connection as if the client had.
 */
#ifndef ADMIN_MINDER_H
#define ADMIN_MINDER_H

#include <microhttpd.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "core/base/attr.h"
#include "core/base/err.h"

enum {
  MINDER_CROWD = 128,     /* connections; fewer where there are few descriptors */
  MINDER_QUIET_MS = 500,  /* a client that has sent nothing, or no whole head, for so long may have to make room ... */
  MINDER_BEGUN_MS = 1000, /* ... and one whose body is still on its way, or that does not take its answer */
};

struct minder;
struct watch; /* one connection */

/* crowd: so many connections are still no crowd. */
MUSTCHECK bool minder_start(size_t crowd, struct minder **out, struct err *err);
/* Resumes every delayed connection now and from here on. */
void minder_release(struct minder *minder);
/* After libmicrohttpd has closed all connections. */
void minder_stop(struct minder **minder);

/* The address of a client; IPv4 as mapped. */
struct in6_addr minder_address(const struct sockaddr *address);
/* A new connection from an address; NULL = out of memory, it is then unguarded. While there are more than a crowd,
 * those that keep us waiting are closed, the longest first, of the address that has the most: who opens connections and
 * says nothing pushes out only their own. A request that is here, or has just begun to come, is never in the way:
 * whoever comes then waits until one of them is done. */
struct watch *minder_watch(struct minder *minder, int fd, const struct sockaddr *address);
void minder_unwatch(struct minder *minder, struct watch *watch);
/* The head of a request is here, or the request is over. */
void minder_begun(struct minder *minder, struct watch *watch, bool begun);
bool minder_is_crowded(struct minder *minder);
/* Gives the connection's next step until at_us (monotonic); 0 = as long as it takes, it is our turn. NULL watch is
 * ignored. */
void minder_arm(struct minder *minder, struct watch *watch, int64_t at_us);
/* Resumes a suspended connection at at_us. False = it is not delayed (the minder stops, or NULL watch). */
MUSTCHECK bool minder_delay(struct minder *minder, struct watch *watch, struct MHD_Connection *connection,
                            int64_t at_us);

#endif
