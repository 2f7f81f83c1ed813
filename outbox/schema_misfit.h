/* SPDX-License-Identifier: MIT
 *
 * outbox/schema_misfit.h - which rows keep a migration from adding a rule to their table.
 */
#ifndef OUTBOX_SCHEMA_MISFIT_H
#define OUTBOX_SCHEMA_MISFIT_H

#include "core/base/err.h"
#include "outbox/db_conn.h"

/* Where err says that a CHECK refused rows of the table, and that text of a migration (expanded) is what defines it:
 * puts into err which rule it is, how many rows, some of their ids, the cure, and a SELECT of all of them. False: err
 * is as it was, as the rule is not defined there or the rows cannot be found. The connection must be usable, as it is
 * behind a statement that the server refused. */
bool schema_misfit_explain(struct db_conn *conn, const char *migration, struct err *err);

#endif
