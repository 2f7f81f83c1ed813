/* SPDX-License-Identifier: MIT
 *
 * outbox/db_patience.h - inside of outbox/: waiting for statements of `duebox migrate` as long as the server works at
 * them.
 *
 * An ALTER of a large table takes as long as it takes, and says nothing meanwhile: by its connection it cannot be told
 * from a server that is frozen, or from an answer that was lost. So another thread, with a session of its own, asks the
 * server every database.read_timeout whether it still answers, and whether the session that holds the lock of
 * migrations is still at work. After two looks in turn that find neither, it shuts the socket down, and the library's
 * call fails as it does with a connection that was lost.
 *
 * What the server refuses to say (no connection is left for us, a right is missing) is an answer, too: it lives.
 */
#ifndef OUTBOX_DB_PATIENCE_H
#define OUTBOX_DB_PATIENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/attr.h"
#include "core/base/sync.h"
#include "outbox/db_conn.h"

/* On the stack of the thread that waits. */
struct db_patience {
  struct thread thread;
  struct mutex lock;
  struct cond changed;
  struct db_conn *conn;   /* which waits */
  struct db_conn *second; /* the thread's own; NULL = none yet */
  int socket;             /* of conn, a descriptor of our own */
  int64_t limit_ms;       /* of conn, as it was */
  bool started, over;
  bool cut;
  struct err why;
};

/* From now on the connection, of role DB_MIGRATE and holder of the lock of migrations, waits for its server as above.
 */
void db_patience_begin(struct db_patience *patience, struct db_conn *conn);
/* Waits for database.read_timeout as before. ok: what was done meanwhile; returned, but where the wait was ended: then
 * err says so. */
bool db_patience_end(struct db_patience *patience, bool ok, struct err *err);

#endif
