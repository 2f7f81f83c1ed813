/* SPDX-License-Identifier: MIT
 *
 * outbox/rights.h - the rights that our statements need, taken from the statements themselves.
 *
 * A statement that lacks its right fails when it is first needed, which may be months after the start. So the rights
 * are tried before the first task is taken, with statements that change nothing.
 */
#ifndef OUTBOX_RIGHTS_H
#define OUTBOX_RIGHTS_H

#include <stddef.h>

#include "core/base/attr.h"
#include "core/base/err.h"
#include "outbox/db_conn.h"
#include "outbox/sql.h"

/* Behind RIGHT_DELETE those that cannot be tried without a change. Tasks are sent without them, too. */
enum right {
  RIGHT_SELECT = 1,
  RIGHT_INSERT = 2,
  RIGHT_UPDATE = 4,
  RIGHT_DELETE = 8,
  RIGHT_ALTER = 16,
  RIGHT_CREATE = 32,
  RIGHT_DROP = 64
};
enum { RIGHTS = 7 };
/* As a GRANT names them, in their order. */
extern const char *const right_names[RIGHTS];

enum { RIGHTS_TABLES = 16, RIGHTS_SUFFIX = 24 };

struct rights {
  size_t count;
  struct {
    char suffix[RIGHTS_SUFFIX]; /* of the table: "_heads", "" */
    unsigned need;              /* enum right */
  } tables[RIGHTS_TABLES];
};

/* Adds what a statement of sql/queries/ needs. Pure. False: more tables than there is room for. */
MUSTCHECK bool rights_add(struct rights *rights, const char *statement);
/* What the statements of a catalogue (NULL-terminated) need: of the daemon, the one of sql/queries/. */
MUSTCHECK bool rights_of(const char *const *catalogue, struct rights *rights);

/* Tries them. missing becomes a GRANT statement for each table that lacks one, "; " between them; empty = nothing is
 * missing. lost: the names of tables that are not there, ", " between them. False with err: it could not be found out.
 */
MUSTCHECK bool rights_try(struct db_conn *conn, const struct rights *rights, struct text *missing, struct text *lost,
                          struct err *err);

/* All that the daemon needs; false with DB_E_RIGHTS and the statements that grant it when something is missing. */
MUSTCHECK bool rights_check(struct db_conn *conn, struct err *err);

#endif
