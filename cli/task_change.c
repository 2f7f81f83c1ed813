/* SPDX-License-Identifier: MIT
 *
 * cli/task_change.c - `duebox task cancel`, `reschedule`, `retry`, `set`, and `duebox dead retry`.
 */
#include <string.h>
#include <sysexits.h>

#include "cli/change.h"
#include "cli/task.h"

/* Filters of the verbs that change living tasks select what `task list` lists: one that is on its way out matches them,
 * and who believes that all are changed has to learn of it. */

int run_task_cancel(struct cli *cli, const struct args *args) {
  static const struct change_rule rule = {
      .verb = CHANGE_CANCEL, .states = STATES_LIVING, .allowed = STATES_LIVING, .done = "cancelled"};
  struct task_change order = {0};
  return change_tasks(cli, args, &rule, &order);
}

int run_task_reschedule(struct cli *cli, const struct args *args) {
  static const struct change_rule rule = {
      .verb = CHANGE_RESCHEDULE, .states = STATES_LIVING, .allowed = STATE_BIT(TASK_SCHEDULED), .done = "rescheduled"};
  struct task_change order = {0};
  struct err err = {0};
  struct when at = {0};
  int64_t delay_ms = -1;
  if (!args_when(args, OPT_AT, &at, &err) || !args_duration(args, OPT_DELAY, &delay_ms, &err))
    return cli_fail_err(&err);
  if (at.given == (delay_ms >= 0))
    return cli_fail(EX_USAGE, "task reschedule: when? Give either --at TIME or --delay DURATION");
  if (delay_ms >= 0)
    at = (struct when){.given = true, .relative = true, .us = delay_ms * 1000};
  int code = change_check_line(args, &rule);
  if (code == EX_OK)
    code = cli_task_time(cli, &at, "task reschedule: a due time", &order.due_us);
  return code ? code : change_tasks(cli, args, &rule, &order);
}

int run_task_retry(struct cli *cli, const struct args *args) {
  static const struct change_rule rule = {.verb = CHANGE_RETRY,
                                          .states = STATE_BIT(TASK_DEAD),
                                          .allowed = STATE_BIT(TASK_DEAD) | STATE_BIT(TASK_EXPIRED) |
                                                     STATE_BIT(TASK_CANCELLED) | STATE_BIT(TASK_SCHEDULED),
                                          .failed_only = true,
                                          .done = "retried"};
  struct task_change order = {0};
  return change_tasks(cli, args, &rule, &order);
}

int run_dead_retry(struct cli *cli, const struct args *args) {
  static const struct change_rule rule = {
      .verb = CHANGE_RETRY, .states = STATE_BIT(TASK_DEAD), .allowed = STATE_BIT(TASK_DEAD), .done = "retried"};
  struct task_change order = {0};
  return change_tasks(cli, args, &rule, &order);
}

/* Reads one setting where it is given. 0 stands for "as the route says". */
static bool read_setting(const struct args *args, enum option_id id, enum task_setting setting, int64_t min,
                         int64_t max, struct task_change *order, struct err *err) {
  if (!args_int(args, id, min, max, &order->numbers[setting], err))
    return false;
  order->given |= args_has(args, id) ? 1u << setting : 0;
  return true;
}

/* What the table would say of each row. */
static bool check_host(const char *host, struct err *err) {
  size_t len = host ? strlen(host) : 0, characters = 0;
  for (size_t i = 0; i < len; i++)
    characters += ((unsigned char)host[i] & 0xc0) != 0x80; /* of UTF-8 */
  return (characters <= STORE_INSTANCE_MAX && (len == 0 || host[len - 1] != ' ')) ||
         err_set(err, EX_DATAERR, "task set: the name of a host has at most %d characters, and no blank at its end",
                 STORE_INSTANCE_MAX);
}

static const char expired_already[] =
    "task set: --expires-at must be later than now; `duebox task cancel` ends tasks at once";

static bool read_settings(const struct args *args, struct task_change *order, struct when *expires, struct err *err) {
  const char *expires_at = args_text(args, OPT_EXPIRES_AT);
  if (!read_setting(args, OPT_PRIORITY, SET_PRIORITY, 1, 9, order, err) ||
      !read_setting(args, OPT_MAX_ATTEMPTS, SET_MAX_ATTEMPTS, 0, UINT32_MAX, order, err) ||
      !task_timeout(args, &order->numbers[SET_TIMEOUT_MS], err))
    return false;
  order->given |= args_has(args, OPT_TIMEOUT) ? 1u << SET_TIMEOUT_MS : 0;
  order->given |= expires_at ? 1u << SET_EXPIRES_AT : 0;
  order->target_host = args_text(args, OPT_TARGET_HOST);
  order->given |= order->target_host ? 1u << SET_TARGET_HOST : 0;
  if (!check_host(order->target_host, err))
    return false;
  if (!expires_at || strcmp(expires_at, "never") == 0)
    return true;
  return args_when(args, OPT_EXPIRES_AT, expires, err) &&
         (!expires->relative || expires->us > 0 || err_set(err, EX_USAGE, "%s", expired_already));
}

/* A task whose time has passed is never sent: who wants that says so, and his tasks are cancelled. */
static int check_expiry(struct cli *cli, const struct when *expires, int64_t expires_us) {
  const struct when now = {.given = true, .relative = true};
  int64_t now_us;
  int code = expires->given ? cli_when(cli, &now, &now_us) : EX_OK;
  if (code == EX_OK && expires->given && expires_us <= now_us)
    return cli_fail(EX_USAGE, "%s", expired_already);
  return code;
}

int run_task_set(struct cli *cli, const struct args *args) {
  static const struct change_rule rule = {
      .verb = CHANGE_SET, .states = STATES_LIVING, .allowed = STATE_BIT(TASK_SCHEDULED), .done = "changed"};
  struct task_change order = {0};
  struct when expires = {0};
  struct err err = {0};
  if (!read_settings(args, &order, &expires, &err))
    return cli_fail_err(&err);
  if (!order.given)
    return cli_fail(EX_USAGE, "task set: what? Give --priority, --max-attempts, --timeout, --expires-at or "
                              "--target-host");
  int code = change_check_line(args, &rule);
  if (code == EX_OK)
    code = cli_task_time(cli, &expires, "task set: expires_at", &order.numbers[SET_EXPIRES_AT]);
  if (code == EX_OK)
    code = check_expiry(cli, &expires, order.numbers[SET_EXPIRES_AT]);
  return code ? code : change_tasks(cli, args, &rule, &order);
}
