/* SPDX-License-Identifier: MIT
 *
 * outbox/db_api.h - the client library's header, and where MariaDB Connector/C and libmysqlclient differ: here, in how
 * they log in (db_auth.c), and in how they follow a binlog (db_tail.c).
 *
 * Nobody else tests which of the two it is.
 */
#ifndef OUTBOX_DB_API_H
#define OUTBOX_DB_API_H

#include <mysql.h>

#if defined(MARIADB_BASE_VERSION) || defined(MARIADB_PACKAGE_VERSION_ID)
#define DB_API_MARIADB 1
#else
#define DB_API_MARIADB 0
#endif

#include "core/base/attr.h"
#include "core/base/err.h"
#include "core/config.h"
#include "core/store.h"

/* Prepares the library for use by several threads. Once, on the main thread, before the first connection. */
MUSTCHECK bool db_api_init(struct err *err);
/* To be called on each thread that opens a connection. */
void db_api_thread(void);

/* Says which server to reach and how: protocol, TLS, plug-in folder, local files off, no reconnect. patient: the
 * library waits for an answer as long as it takes, since an ALTER of a large table does (db_patience.h); all else is
 * limited by db_conn.limit_ms. False: the configuration asks for what is not allowed or not possible (err->code is a
 * db_own_error). */
MUSTCHECK bool db_api_prepare(MYSQL *mysql, const struct database_config *config, bool patient, const char *purpose,
                              struct err *err);
enum { DB_API_READ_AHEAD = 16 * 1024 }; /* the library reads that many bytes behind what it needs, at most */
/* From now on what the library receives on the connection is taken off *allowance, which outlives mysql. For the
 * connection's own thread. libmysqlclient shows nothing of what it reads: there nothing is taken off. */
struct db_allowance;
void db_api_count(MYSQL *mysql, struct db_allowance *allowance);
/* Whether the connection is as safe as the configuration demands; to be asked after connecting. */
MUSTCHECK bool db_api_verify(MYSQL *mysql, const struct database_config *config, struct err *err);

/* Following the server's binlog. MariaDB Connector/C (3.3.9 or later) can do it with a MariaDB server, and with a MySQL
 * server as long as no transaction has a GTID with a tag, at which it fails; libmysqlclient with a MySQL server. A
 * connection that follows does nothing else until it is closed. */
struct db_tail;
/* One event of the log; its bytes are valid until the next is asked for. */
struct db_event {
  uint8_t type;
  const uint8_t *body; /* behind the event's header, without checksum */
  size_t len;
  struct duebox_bytes plain;               /* of a compressed rows event: its rows, unpacked */
  struct duebox_bytes database, statement; /* of a statement */
};
/* Whether this library with this server can do it; false with err, whose text says what is missing. */
MUSTCHECK bool db_api_can_tail(MYSQL *mysql, struct err *err);
/* Begins at a position of a log file, as a replica of that server_id. Of an event of more than `largest` bytes nothing
 * is read, and nothing after it: DB_E_EVENT. *tail is to be closed before mysql is. */
MUSTCHECK bool db_api_tail(MYSQL *mysql, const struct database_config *config, const char *file, uint64_t position,
                           uint32_t server_id, size_t largest, struct db_tail **tail, struct err *err);
/* Waits for the next event, at most the connection's read time-out. False with err: no more of them. */
MUSTCHECK bool db_api_tail_next(struct db_tail *tail, struct db_event *event, struct err *err);
void db_api_tail_close(struct db_tail **tail);
/* The socket of a connection that is made. */
int db_api_socket(MYSQL *mysql);
/* Any thread: has a call that waits on this connection fail at once. */
void db_api_interrupt(MYSQL *mysql);

#endif
