/* SPDX-License-Identifier: MIT
 *
 * outbox/schema.h - the migrations of sql/schema/: which there are, which a database has had, and applying the rest.
 *
 * Migrations are numbered, append-only and carry a checksum. DDL cannot be rolled back, so every statement is
 * idempotent and its completion is recorded: a migration that broke off goes on where it stopped. Two migrators at once
 * are fine.
 */
#ifndef OUTBOX_SCHEMA_H
#define OUTBOX_SCHEMA_H

#include <stdio.h>

#include "core/base/attr.h"
#include "core/base/err.h"
#include "outbox/db_conn.h"

enum { SCHEMA_SHARDS_DEFAULT = 8 };

struct migrate_options {
  uint32_t shards; /* 1..SHARD_BOUND; 0 = what the table has, or the default. Fixed by the first migration. */
  bool dry_run;    /* change nothing, say what would be done */
};

struct schema_status {
  uint32_t version;                           /* highest complete migration; 0 = none */
  uint32_t latest;                            /* highest that this program has */
  uint32_t shards;                            /* 0 = not migrated */
  char repair[sizeof((struct err *)0)->text]; /* what migrating would repair beside versions; "" = nothing */
};

/* Writes all migrations as SQL that can be run by hand: the next migrator finds them done. Needs no database. */
MUSTCHECK bool schema_print(const char *table, uint32_t shards, FILE *out, struct err *err);
/* Applies what is missing, makes tables again that were lost, and says so on out, one line each. Connection of role
 * DB_MIGRATE; to be closed after a failure, since it may hold the migrators' lock. */
MUSTCHECK bool schema_migrate(struct db_conn *conn, const struct migrate_options *options, FILE *out, struct err *err);
MUSTCHECK bool schema_status(struct db_conn *conn, struct schema_status *out, struct err *err);
/* Whether this program can work with the schema: all migrations that it knows are complete and there is none that it
 * does not know. err says what to do. Notes in conn how many shards there are. */
MUSTCHECK bool schema_check(struct db_conn *conn, struct err *err);

/* Whether the tables have the columns of all migrations, and none that refuses what duebox inserts; false with
 * DB_E_ROW: err says which, and what to do. */
MUSTCHECK bool schema_columns(struct db_conn *conn, struct err *err);

/* Whether a migration gives a table of duebox a CHECK of that name, behind that of the first table and '_'. */
bool schema_has_check(const char *name);
/* The n-th of the CHECKs that migrations give the outbox, by its name behind that of the table and '_'; each once.
 * False: there are no more. */
bool schema_check_of_outbox(size_t n, char *name, size_t cap);

#endif
