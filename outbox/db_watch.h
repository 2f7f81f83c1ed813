/* SPDX-License-Identifier: MIT
 *
 * outbox/db_watch.h - inside of outbox/: limits for what a connection waits for, as a whole.
 *
 * The limits of the client library are for one wait each. A server, or a proxy before it, that always has something
 * more to say keeps a login or a statement for ever: another login method, TLS records without content, a byte now and
 * then. So each connection has a thread that shuts the socket down in time, and the library's call fails as it does
 * with a connection that was lost. Setting a limit costs a clock reading: the thread is not woken for it, but finds
 * when it wakes that there is a later one.
 *
 * A limit is for a login, for what sets a session up, or for one statement: until its answer has begun, and where that
 * has rows, until they are all there. Rows may be many and the line slow, so they may take longer, as long as they come
 * (db_watch_goes_on).
 *
 * libmysqlclient shows its socket when the login is over, so there only what follows has a limit as a whole.
 */
#ifndef OUTBOX_DB_WATCH_H
#define OUTBOX_DB_WATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/base/attr.h"
#include "core/base/sync.h"

enum {
  DB_WATCH_SLOWEST = 32, /* bytes a millisecond: a slower line, a quarter of a megabit a second, is taken for none */
  DB_WATCH_TIMES = 10,   /* the limit, for rows that come */
};

/* How the rows of one answer come. Zeroed at first. */
struct db_watch_flow {
  uint64_t bytes; /* that had come when the limit was looked at last */
  unsigned times; /* it has been */
};

/* Whether rows that are not all there when the limit has passed, once more, may go on: the first time, and then as long
 * as they came at DB_WATCH_SLOWEST since the time before, but for DB_WATCH_TIMES the limit at most. bytes: received so
 * far; known: the system tells. Where it does not, as of a unix socket, they are taken to come. Pure. */
MUSTCHECK bool db_watch_goes_on(struct db_watch_flow *flow, int64_t limit_us, bool known, uint64_t bytes);

/* Part of a connection, and of its thread; db_watch_interrupt() alone may be called by others. */
struct db_watch {
  struct thread thread;
  struct mutex lock; /* guards all that follows */
  struct cond changed;
  int64_t limit_us, deadline_us; /* monotonic; no deadline: nothing is waited for */
  int64_t wakes_us;              /* when the thread looks next, at the latest */
  struct db_watch_flow flow;
  int socket;  /* a descriptor of our own, since the library closes its own at any time; -1: none */
  ino_t inode; /* which socket it is */
  bool rows;   /* are waited for */
  bool started, over, cut;
};

void db_watch_create(struct db_watch *watch);
/* When the library has closed its own descriptor: until then the other end sees no end. */
void db_watch_destroy(struct db_watch *watch);

/* The caller logs in on this connection: the time counts from when a socket is first waited for, so it has no part in
 * looking names up, and begins again with each address that is tried. */
void db_watch_login(struct db_watch *watch, int64_t limit_ms);
/* For this thread's login, where there is one: the socket that the library is at work with. */
void db_watch_socket(int fd);
/* Whether there is a socket to watch; not where no file was left for it. */
MUSTCHECK bool db_watch_has_socket(const struct db_watch *watch);
/* A further part of the login has a limit of its own, from now on. */
void db_watch_login_again(struct db_watch *watch, int64_t limit_ms);
/* The login is over. Whether the time was up, and the socket is shut down. */
bool db_watch_login_end(struct db_watch *watch);

/* From now on something has this limit, instead of what had one before. rows: of an answer, see above. */
void db_watch_limit(struct db_watch *watch, int64_t limit_ms, bool rows);
/* Nothing is waited for any more. Whether the time was up since this was asked last, and the socket is shut down. */
bool db_watch_done(struct db_watch *watch);

/* Any thread, while the connection is open: has a call that waits on it fail at once. */
void db_watch_interrupt(struct db_watch *watch);

#endif
