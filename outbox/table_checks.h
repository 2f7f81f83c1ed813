/* SPDX-License-Identifier: MIT
 *
 * outbox/table_checks.h - the CHECKs of a table, from the text of SHOW CREATE TABLE. Pure.
 *
 * information_schema shows a CHECK of MariaDB to nobody who has no more than the rights of sql/examples/grants.sql; who
 * may read a table is told of all of it here.
 */
#ifndef OUTBOX_TABLE_CHECKS_H
#define OUTBOX_TABLE_CHECKS_H

#include <stdbool.h>

/* name: of the constraint, or of the column whose definition holds it; valid during the call. */
typedef void table_check_fn(void *ctx, const char *name, bool of_column);

/* Calls found for each CHECK of the table, in their order. create: what the server printed, with quoted names or
 * without. */
void table_checks(const char *create, table_check_fn *found, void *ctx);

#endif
