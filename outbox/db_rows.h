/* SPDX-License-Identifier: MIT
 *
 * outbox/db_rows.h - the rows of one answer, taken off the wire as a whole so that the connection is free again.
 *
 * What the server sends decides how much that is, so there is an end to it: who answers in the server's place must not
 * take all memory. Rows lie in a few large blocks, each copied once.
 */
#ifndef OUTBOX_DB_ROWS_H
#define OUTBOX_DB_ROWS_H

#include "core/base/attr.h"
#include "outbox/db_api.h"

struct db_stored_row {
  struct db_stored_row *next;
  char **fields;
  unsigned long *lengths;
};

struct db_rows;

enum db_rows_end { DB_ROWS_ALL, DB_ROWS_FAILED, DB_ROWS_NO_MEMORY, DB_ROWS_ENDLESS };

/* Takes all rows of a result that is being received. ENDLESS: there are more than `most` bytes of them, and the rest is
 * still to come. On anything but ALL nothing is kept. */
enum db_rows_end db_rows_take(MYSQL *mysql, MYSQL_RES *result, uint64_t most, struct db_rows **out);
void db_rows_free(struct db_rows **rows);

uint64_t db_rows_count(const struct db_rows *rows);
/* The first that has not been given yet, or NULL. */
const struct db_stored_row *db_rows_next(struct db_rows *rows);

#endif
