/* SPDX-License-Identifier: MIT
 *
 * outbox/schema_columns.h - whether our tables have the columns that the migrations gave them.
 *
 * The version table says which migrations have been applied, and nothing of what somebody has done to the tables since.
 */
#ifndef OUTBOX_SCHEMA_COLUMNS_H
#define OUTBOX_SCHEMA_COLUMNS_H

#include <stddef.h>

#include "core/base/attr.h"
#include "core/base/err.h"
#include "outbox/db_conn.h"

/* Whether the tables have all columns that these migrations (texts with {table}) make, and no other that a row must
 * give a value: for nothing that duebox inserts there does. False with DB_E_ROW: err says which, and what to do. A
 * table that is not there, or that the connection's user may not see, is passed over. */
MUSTCHECK bool schema_columns_check(struct db_conn *conn, const char *const *migrations, size_t count, struct err *err);

#endif
