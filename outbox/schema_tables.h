/* SPDX-License-Identifier: MIT
 *
 * outbox/schema_tables.h - what the database has under the names of our tables.
 *
 * CREATE TABLE IF NOT EXISTS takes any table of that name for ours. So somebody has to look before. And what statements
 * compare they compare by the column's own collation, and whether they can be undone is up to the table's engine:
 * somebody may have changed both.
 */
#ifndef OUTBOX_SCHEMA_TABLES_H
#define OUTBOX_SCHEMA_TABLES_H

#include <stdint.h>

#include "core/base/attr.h"
#include "core/base/err.h"
#include "outbox/db_conn.h"
#include "outbox/db_stmt.h"

enum { SCHEMA_TABLES = 11, SCHEMA_NAME_ROOM = 96 };

/* Tables by their place in a list that begins with the outbox itself. */
struct schema_tables {
  uint32_t ours;
  uint32_t foreign; /* the name is taken by a table of another program */
};

/* What somebody has made of a table of ours by converting it. */
struct schema_flaw {
  enum { SCHEMA_SOUND, SCHEMA_ENGINE, SCHEMA_COLLATION } kind;
  char table[SCHEMA_NAME_ROOM];
};

/* As far as the connection's user may see them. */
MUSTCHECK bool schema_tables_find(struct db_conn *conn, struct schema_tables *out, struct err *err);
/* The n-th of those that are not there, by its name behind that of the outbox; NULL: there are no more. */
const char *schema_tables_lost(const struct schema_tables *tables, size_t n);
/* False, with what to do in err, when another program has a table of that name. */
MUSTCHECK bool schema_tables_free(const struct db_conn *conn, const struct schema_tables *tables, struct err *err);
/* False, with what to do in err, when the outbox is not there, although a migration made it. complete: all of them have
 * been applied, so that there may be tasks in the history. */
MUSTCHECK bool schema_tables_kept(struct db_conn *conn, bool complete, struct err *err);
/* Whether each of them has transactions, and compares ids, routes, keys and names of daemons byte by byte. err says
 * what the first that does not is like. False: the server could not be asked. */
MUSTCHECK bool schema_tables_flaw(struct db_conn *conn, struct schema_flaw *out, struct err *err);
/* The query for each table, of which it may use {name} and {column}, as one statement. */
MUSTCHECK bool schema_tables_ask(struct db_conn *conn, const char *query, const char *what, struct db_result *out,
                                 struct err *err);

#endif
