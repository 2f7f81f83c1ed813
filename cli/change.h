/* SPDX-License-Identifier: MIT
 *
 * cli/change.h - changing tasks in number: select, count, ask, change in steps, tell, leave an audit row.
 */
#ifndef CLI_CHANGE_H
#define CLI_CHANGE_H

#include "cli/cli.h"

/* What a verb means by default. */
struct change_rule {
  enum change_verb verb;
  uint32_t states;  /* filters without --state look at these */
  uint32_t allowed; /* --state may name these only */
  bool failed_only; /* of living tasks those with failures only */
  const char *done; /* past participle: "cancelled" */
};

/* The options that every changing command takes beside the selection. */
#define CHANGING OPT_LIMIT, OPT_DRY_RUN, OPT_RATE, OPT_REASON, OPT_YES

/* Whether the line makes sense; needs no database. Exit code. For commands that ask the database before they run. */
MUSTCHECK int change_check_line(const struct args *args, const struct change_rule *rule);

/* Runs the command. `order` holds the values of the change; actor, reason, filter and keep_us are filled in here. */
MUSTCHECK int change_tasks(struct cli *cli, const struct args *args, const struct change_rule *rule,
                           struct task_change *order);

#endif
