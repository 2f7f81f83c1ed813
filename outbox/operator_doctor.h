/* SPDX-License-Identifier: MIT
 *
 * outbox/operator_doctor.h - what the files operator_doctor*.c share. Nobody else includes it.
 */
#ifndef OUTBOX_OPERATOR_DOCTOR_H
#define OUTBOX_OPERATOR_DOCTOR_H

#include "outbox/operator_impl.h"

enum { VARIABLES_MAX = 16, VALUE_MAX = 256, DOCTOR_NO_TABLE = 1146 };

struct variable {
  char name[64], value[VALUE_MAX];
};

struct doctor {
  struct outbox_operator *op;
  const struct doctor_facts *facts;
  finding_fn *say;
  void *ctx;
  struct variable variables[VARIABLES_MAX];
  size_t variable_count;
  bool tables_lost; /* and said so: what cannot be looked at for that is no news */
};

void doctor_say(const struct doctor *doctor, enum finding level, const char *check, const char *cure, const char *fmt,
                ...) PRINTF(5, 6);

/* Runs a query that gives at most one row. *found false: no row. False: err. */
MUSTCHECK bool doctor_row(const struct doctor *doctor, const char *statement, const struct sql_arg *args,
                          unsigned columns, struct db_result *result, struct db_row *row, bool *found, struct err *err);

/* False with err: it could not be made. */
typedef bool doctor_check(struct doctor *doctor, struct err *err);
/* Makes the checks. One that the server refuses is a finding, and not the end of the others. */
MUSTCHECK bool doctor_run(struct doctor *doctor, doctor_check *const *checks, size_t count, struct err *err);

/* Looks at the tables. */
MUSTCHECK bool doctor_tables(struct doctor *doctor, struct err *err);

#endif
