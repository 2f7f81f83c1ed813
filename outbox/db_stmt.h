/* SPDX-License-Identifier: MIT
 *
 * outbox/db_stmt.h - sending statements and reading what comes back.
 *
 * A script is one or more statements in one packet and one round trip. Rows are taken as a whole and read in place.
 * When the server refuses a statement the ones after it have not run; nothing is rolled back by that. The connection
 * knows from which one on (untouched): all before it may have run, a COMMIT among them too.
 *
 * Who answers need not be the server. An answer that is larger than any of ours ends its connection; one whose rows
 * have another number of columns than the statement's gives no row, and marks its connection: nothing is sent on it any
 * more, no COMMIT above all, and each call says why.
 */
#ifndef OUTBOX_DB_STMT_H
#define OUTBOX_DB_STMT_H

#include "core/base/attr.h"
#include "core/base/err.h"
#include "outbox/db_conn.h"
#include "outbox/sql.h"

enum { DB_RESULTS_MAX = 64 };

/* Of one statement: its rows, or how many rows it found to change. */
struct db_result {
  struct db_conn *conn;
  void *set;            /* MYSQL_RES *: the columns; NULL for a statement without rows */
  struct db_rows *rows; /* NULL likewise */
  unsigned columns;
  uint64_t count;   /* rows given, or matched by INSERT, UPDATE, DELETE */
  uint64_t fetched; /* of the rows given, by db_next() */
};

/* One row. fields[i] is NULL for SQL NULL, else NUL-terminated with its length in lengths[i]. */
struct db_row {
  char *const *fields;
  const unsigned long *lengths;
};

/* Runs a script of exactly n statements. On success every results[i] is to be freed; on failure none. what names the
 * work for the error text. */
MUSTCHECK bool db_script(struct db_conn *conn, const struct text *script, const char *what, struct db_result *results,
                         size_t n, struct err *err);
/* The same for one statement whose rows and count nobody wants. */
MUSTCHECK bool db_run(struct db_conn *conn, const char *statement, const char *what, struct err *err);

void db_results_free(struct db_result *results, size_t n);
enum { DB_ANY_COLUMNS = 0 };
/* The next row; false after the last. columns: how many the statement gives. Whoever says DB_ANY_COLUMNS asks the
 * result for their number. */
bool db_next(struct db_result *result, struct db_row *row, unsigned columns);
/* False when an answer on this connection had other columns than its statement. */
MUSTCHECK bool db_is_sound(const struct db_conn *conn, const char *what, struct err *err);

/* Fields as numbers and times. False when NULL or not such a value. */
MUSTCHECK bool db_u64(const struct db_row *row, unsigned field, uint64_t max, uint64_t *out);
MUSTCHECK bool db_time(const struct db_row *row, unsigned field, int64_t *us);
/* Copies a field into out (cap bytes with the NUL); NULL becomes "". False when it is too long. */
MUSTCHECK bool db_copy(const struct db_row *row, unsigned field, char *out, size_t cap);

/* The answer is not what the statement gives. Returns false. */
bool db_unexpected(struct err *err, const char *what);

#endif
