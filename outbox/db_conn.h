/* SPDX-License-Identifier: MIT
 *
 * outbox/db_conn.h - one connection to the database, opened by the rules and verified.
 *
 * Every connection has time limits on connecting, reading and writing, UTC as time zone, READ COMMITTED, a strict SQL
 * mode, short lock waits, server-side limits on idle transactions, no local files and no automatic reconnect; what
 * could be lost on the way is read back. A connection belongs to one thread. Errors carry the server's number in
 * err->code (db_error.h gives its class).
 */
#ifndef OUTBOX_DB_CONN_H
#define OUTBOX_DB_CONN_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/attr.h"
#include "core/base/err.h"
#include "core/config.h"
#include "core/store.h"
#include "outbox/db_watch.h"

/* In which our statements mean what they say. */
#define DB_SQL_MODE "STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION"

enum db_role {
  DB_DAEMON,   /* database.user; refuses a read-only server and a schema that is missing, older or newer */
  DB_OPERATOR, /* the same user for command-line reads: a read-only server is fine */
  DB_MIGRATE,  /* database.migrate_user, no check of the schema */
};

/* How much a connection may still receive. */
struct db_allowance {
  uint64_t left; /* bytes */
  bool exceeded; /* more has come, and the socket is shut down */
};

struct db_conn {
  void *mysql;                          /* MYSQL *: the client libraries differ in the name of that struct */
  const struct database_config *config; /* outlives the connection */
  uint64_t max_packet;                  /* the server's max_allowed_packet, bytes */
  struct db_allowance received;         /* of what is being done: see db_stmt.c */
  uint64_t max_answer;                  /* of one statement's rows, bytes: no statement of ours gives as many */
  bool unsound;                         /* an answer had other columns than its statement (db_stmt.h) */
  size_t untouched;                     /* the script that failed last: from which statement on none has run */
  struct db_watch watch;                /* its limits as a whole */
  int64_t limit_ms;                     /* for each statement's answer; 0 = the watch is not ours, or not wanted */
  int64_t idle_limit_us;                /* the server ends the session when it is idle for this long */
  uint32_t shards;                      /* of the outbox; 0 for DB_MIGRATE */
  bool is_cluster;                      /* the server is a node of a Galera cluster */
  enum db_role role;
  char server[STORE_SERVER_MAX]; /* which one answers, for people and to be compared: a cluster counts as one server */
};

/* Connects and verifies. purpose is seen in performance_schema's connection attributes. *out is NULL on failure. */
MUSTCHECK bool db_open(const struct database_config *config, enum db_role role, const char *purpose,
                       struct db_conn **out, struct err *err);
/* Closes; whatever was not committed is rolled back by the server. *conn may be NULL and becomes NULL. */
void db_close(struct db_conn **conn);

/* The server's number for this session. */
uint64_t db_thread(const struct db_conn *conn);

/* Writes why the library's last call failed; returns false. The words of the server, or of a proxy before it, may
 * repeat a password and move a terminal: they are without the configured passwords and control characters. code: the
 * error's number; cure: what an operator can do, or "". mysql is a MYSQL *. */
bool db_failed(void *mysql, const struct database_config *config, const char *what, int code, const char *cure,
               struct err *err);

/* Prepares the client library. Once, on the main thread, before the first db_open. */
MUSTCHECK bool db_init(struct err *err);

/* "host:port" or the socket's path. */
void db_place(const struct database_config *config, char *out, size_t cap);

#endif
