/* SPDX-License-Identifier: MIT
 *
 * cli/select.h - which tasks a command is about: ids as operands, or filters as options.
 */
#ifndef CLI_SELECT_H
#define CLI_SELECT_H

#include "cli/args.h"
#include "cli/cli.h"
#include "core/operator.h"

/* The options that select, for the table of commands. */
#define SELECTION                                                                                                      \
  OPT_ROUTE, OPT_STATE, OPT_KEY, OPT_ERROR, OPT_DUE_BEFORE, OPT_DUE_AFTER, OPT_CREATED_BEFORE, OPT_CREATED_AFTER,      \
      OPT_WHERE

struct selection {
  struct task_filter filter; /* points into args */
  uint32_t relative_times;   /* bits: the n-th time of the filter counts from now, which select_open() adds */
  bool by_ids;               /* operands were given */
  bool filtered;             /* a selecting option was given */
  bool states_given;         /* --state was given */
  char words[512];           /* the selection as it was typed, for people and the audit row */
};

/* Reads operands and options. Where the command takes --priority among its selecting options (not as a value), the
 * filter has it too. Pure: what is wrong with the line is said without a database. err->code is an exit code. */
MUSTCHECK bool select_read(const struct args *args, bool priority_selects, struct selection *out, struct err *err);

/* Opens the configured database and makes relative times absolute by its clock. Exit code; errors are printed. */
MUSTCHECK int select_open(struct cli *cli, struct selection *selection, const struct operator** op);
/* Prints what the database said about a selection; blames --where for what only it can have caused. Exit code. */
int select_fail(enum store_status status, const struct selection *selection, const struct err *err);

/* "dead,expired" or living, final, all to bits. */
MUSTCHECK bool states_parse(const char *text, uint32_t *bits, struct err *err);

#endif
