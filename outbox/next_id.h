/* SPDX-License-Identifier: MIT
 *
 * outbox/next_id.h - inside of outbox/: the id that the next row gets, and why the server gives none (error 1467).
 *
 * Either the counter has come to its end (row_ids.c), or another session holds the lock of a counter. It does so while
 * it runs a statement that inserts nobody knows yet how many rows: INSERT .. SELECT, LOAD DATA. Where MySQL says of
 * such a lock what it says of all, MariaDB gives the same error as for the end of the counter. Who takes the one for
 * the other leaves out for good what could have been written a moment later.
 */
#ifndef OUTBOX_NEXT_ID_H
#define OUTBOX_NEXT_ID_H

#include "outbox/db_conn.h"

/* Reads it; 0 where the server does not say. what names the work for the error text. */
MUSTCHECK bool next_id_read(struct db_conn *conn, const char *what, uint64_t *next, struct err *err);
/* Whether the counter comes to its end: a client has put it there. */
bool next_id_ends(uint64_t next);

/* A script that took took_us has failed with DB_NO_ROW_ID: makes that DB_LOCK_WAIT where it met a lock, or the failure
 * to find out. Its transaction stays open. */
void next_id_explain(struct db_conn *conn, const char *what, int64_t took_us, struct err *err);

#endif
