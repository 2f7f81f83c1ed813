/* SPDX-License-Identifier: MIT
 *
 * outbox/schema_tables.h - what the database has under the names of our tables.
 *
 * CREATE TABLE IF NOT EXISTS takes any table of that name for ours. So somebody has to look before. And what statements
 * compare they compare by the column's own collation, which somebody may have changed.
 */
#ifndef OUTBOX_SCHEMA_TABLES_H
#define OUTBOX_SCHEMA_TABLES_H

#include <stdint.h>

#include "core/base/attr.h"
#include "core/base/err.h"
#include "outbox/db_conn.h"

enum { SCHEMA_TABLES = 11 };

/* Tables by their place in a list that begins with the outbox itself. */
struct schema_tables {
  uint32_t ours;
  uint32_t foreign; /* the name is taken by a table of another program */
};

/* As far as the connection's user may see them. */
MUSTCHECK bool schema_tables_find(struct db_conn *conn, struct schema_tables *out, struct err *err);
/* False, with what to do in err, when another program has a table of that name. */
MUSTCHECK bool schema_tables_free(const struct db_conn *conn, const struct schema_tables *tables, struct err *err);
/* False, with what to do in err, when the outbox is not there, although a migration made it. complete: all of them have
 * been applied, so that there may be tasks in the history. */
MUSTCHECK bool schema_tables_kept(struct db_conn *conn, bool complete, struct err *err);
/* Whether ids, routes, keys and names of daemons are compared byte by byte. Where one is not, err says so. */
MUSTCHECK bool schema_tables_collations(struct db_conn *conn, bool *right, struct err *err);

#endif
