/* SPDX-License-Identifier: MIT
 *
 * outbox/db_watch.h - inside of outbox/: a limit for logging in, or for a script, as a whole.
 *
 * The limits of the client library are for one wait each. A server that always has something more to say keeps a login
 * for ever: another login method, TLS records without content, a byte now and then. So another thread shuts the socket
 * down in time, and the library's call fails as it does with a connection that was lost.
 *
 * libmysqlclient shows its socket when the login is over, so there only what follows has a limit as a whole.
 */
#ifndef OUTBOX_DB_WATCH_H
#define OUTBOX_DB_WATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/base/sync.h"

/* On the stack of the thread that logs in. */
struct db_watch {
  struct thread thread;
  struct mutex lock;
  struct cond changed;
  int64_t limit_us, deadline_us; /* monotonic; no deadline while there is no socket */
  int socket;                    /* a descriptor of our own, since the library closes its own at any time; -1: none */
  ino_t inode;                   /* which socket it is */
  bool started, over, cut;
};

/* Watches what this thread does with the database; the time counts from when a socket is first waited for, so it has no
 * part in looking names up, and begins again with each address that is tried. */
void db_watch_begin(struct db_watch *watch, int64_t limit_ms);
/* For this thread's watch, where there is one: the socket that the library is at work with. */
void db_watch_socket(int fd);
/* A further part has a limit of its own, from now on. */
void db_watch_again(struct db_watch *watch, int64_t limit_ms);
/* Whether the time was up, and the socket is shut down. */
bool db_watch_end(struct db_watch *watch);

#endif
