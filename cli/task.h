/* SPDX-License-Identifier: MIT
 *
 * cli/task.h - what the nouns `task` and `dead` share.
 */
#ifndef CLI_TASK_H
#define CLI_TASK_H

#include "cli/cli.h"

/* Lists the tasks that the line selects. states: 0 = as the line says. */
int task_listing(struct cli *cli, const struct args *args, uint32_t states, const struct column *columns,
                 size_t column_count);

/* --timeout of a task, which the table keeps as milliseconds in 32 bits. */
MUSTCHECK bool task_timeout(const struct args *args, int64_t *ms, struct err *err);

#endif
