/* SPDX-License-Identifier: MIT
 *
 * outbox/server.h - what differs between MariaDB and MySQL as servers, beside comments that only one of them reads.
 *
 * What differs between their client libraries is in db_api.h.
 */
#ifndef OUTBOX_SERVER_H
#define OUTBOX_SERVER_H

#include "outbox/session.h"

/* Whether the server that a connection reached is MySQL. Whoever is not MariaDB counts as MySQL. */
bool server_is_mysql(const struct db_conn *conn);

/* What GRANT calls the rights that following the binlog needs. */
const char *server_binlog_rights(const struct db_conn *conn);

/* A node of a Galera cluster may not have applied yet what another node has committed, and a balancer may give each
 * connection another node. Lets all that the session reads or changes wait until its node has; the failure of a server
 * that does not take the setting is the connection's. Does nothing on other servers. */
MUSTCHECK bool server_wait_for_cluster(struct db_conn *conn, struct err *err);

/* What begins and commits a transaction, each as one statement, and what undoes it. A node of a Galera cluster undoes a
 * transaction in favour of one that another node has committed ("brute force"), and MariaDB may execute what is left of
 * a script outside of it and say that all went well. There the rest finds itself in a transaction that is never
 * committed: it lacks the savepoint that the first one began with, and the commit fails as after a deadlock. */
const char *server_begin(const struct db_conn *conn);
const char *server_commit(const struct db_conn *conn);
MUSTCHECK bool server_roll_back(struct db_conn *conn, const char *what, struct err *err);

/* Whether a commit that failed so has certainly not happened. */
bool server_undid_commit(const struct db_conn *conn, int code);

/* An error's number as MariaDB gives it, where MySQL has another for the same. */
int server_error(int code);

/* Words before a statement that let it fail at once where it would wait for a row, or for a table that somebody has
 * locked. MySQL reads them as a comment and waits for a row for a second, the shortest time that it knows; hence
 * server_lock_rows. */
#define SERVER_NO_WAIT "/*M!100303 SET STATEMENT innodb_lock_wait_timeout = 0, lock_wait_timeout = 0 FOR */ "

/* A unit is about to lock rows and, when skip is not "", must not wait in writing them either, not even for an entry of
 * an index that somebody else holds alone. On MySQL this opens the unit's transaction, which session_begin_transaction
 * then continues, and locks the rows of ids (a list, not empty) with all their index entries. *ids becomes a list of
 * those that nobody else holds: "NULL" when there are none. On MariaDB it does nothing. */
MUSTCHECK bool server_lock_rows(struct store_session *ss, const char *what, const char *skip, struct text *ids,
                                struct err *err);
/* The same on any server, whatever has been met. */
MUSTCHECK bool server_lock_entries(struct store_session *ss, const char *what, struct text *ids, struct err *err);

#endif
