/* SPDX-License-Identifier: MIT
 *
 * cli/dead.c - `duebox dead list`: tasks that were given up, with why. `dead retry` is in task_change.c.
 */
#include "cli/task.h"

int run_dead_list(struct cli *cli, const struct args *args) {
  static const struct column columns[] = {
      {"id", "ID", CELL_NUMBER, false},           {"route", "ROUTE", CELL_TEXT, false},
      {"finished_at", "DIED", CELL_TIME, false},  {"attempt", "TRIED", CELL_NUMBER, false},
      {"task_key", "KEY", CELL_TEXT, true},       {"error_class", "ERROR", CELL_TEXT, false},
      {"last_error", "MESSAGE", CELL_TEXT, true},
  };
  return task_listing(cli, args, STATE_BIT(TASK_DEAD), columns, ARRAY_LEN(columns));
}
