/* SPDX-License-Identifier: MIT
 *
 * cli/cli.h - what the commands share: settings of this call, the configuration, and the exit with its message.
 *
 * Everything runs in the main thread. What is opened on demand is closed by cli_close().
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <stdbool.h>

#include "cli/args.h"
#include "cli/output.h"
#include "core/base/attr.h"
#include "core/base/err.h"
#include "core/config.h"
#include "core/operator.h"

struct cli {
  const char *config_path; /* what -c, the environment or the search says; NULL: no file was found */
  struct output output;
  /* Opened on demand. */
  struct module_registry *modules; /* core/modules.h */
  struct config *config;
  struct operator op;
  int64_t now_us; /* the database's clock when a time of the line first counted from now; 0 = none has */
  bool outlived;  /* a plugin's thread is still at work: what it may use is not freed, and the process ends under it */
  bool interruptible; /* interrupt_catch() was called: a signal that came since is obeyed at the end */
};

/* Takes the global options. Exit code. */
MUSTCHECK int cli_open(struct cli *cli, const struct args *args);
/* Flushes what was printed; an exit code for a standard output that did not take it. */
MUSTCHECK int cli_flush(void);
/* Closes what was opened on demand, and cli_flush(). */
MUSTCHECK int cli_close(struct cli *cli);
/* Ends the process without the exit handlers of libraries, which a thread that is still at work may be using. */
void cli_leave(int code);

/* Makes cli->modules, the registry of plugin modules, where it is not there yet. */
void cli_modules(struct cli *cli);
/* The configuration, loaded and checked. Exit code; it has printed what is wrong. */
MUSTCHECK int cli_config(struct cli *cli, const struct config **out);
/* The port for people on the configured database. */
MUSTCHECK int cli_operator(struct cli *cli, const struct operator** out);

/* The same without a word on stderr. */
MUSTCHECK enum store_status cli_connect(struct cli *cli, const struct config *config, const struct operator** out,
                                        struct err *err);
/* A time of the line as microseconds since 1970; relative ones count from now by the database's clock, which is asked
 * only then, and once for all times of a line. 0 where none was given. */
MUSTCHECK int cli_when(struct cli *cli, const struct when *when, int64_t *us);
/* The same for a column of a task: one that was given is a time that the table takes. `what` begins the error's text:
 * "task add: a due time". */
MUSTCHECK int cli_task_time(struct cli *cli, const struct when *when, const char *what, int64_t *us);

/* Who gives commands here, for audit rows: "user@host". */
void cli_actor(char *out, size_t cap);

/* Prints "duebox: <text>" to stderr and returns code. */
int cli_fail(int code, const char *fmt, ...) PRINTF(2, 3);
/* The same for an error whose code is an exit code. */
int cli_fail_err(const struct err *err);
/* What the server has said, or the plain limit that a value has where a CHECK or a column refuses it. Lives as long as
 * err. */
const char *cli_store_text(const struct err *err);
/* The exit code for what the database said, and printing it. */
int cli_store_code(enum store_status status, const struct err *err);
int cli_fail_store(enum store_status status, const struct err *err);
/* A remark on stderr, unless --quiet. */
void cli_remark(const struct cli *cli, const char *fmt, ...) PRINTF(2, 3);

/* Commands, one file per noun. */
int run_check(struct cli *cli, const struct args *args);
int run_completion(struct cli *cli, const struct args *args);
int run_config_show(struct cli *cli, const struct args *args);
int run_dead_list(struct cli *cli, const struct args *args);
int run_dead_retry(struct cli *cli, const struct args *args);
int run_doctor(struct cli *cli, const struct args *args);
int run_migrate(struct cli *cli, const struct args *args);
int run_plugin_info(struct cli *cli, const struct args *args);
int run_plugin_list(struct cli *cli, const struct args *args);
int run_quarantine_list(struct cli *cli, const struct args *args);
int run_quarantine_purge(struct cli *cli, const struct args *args);
int run_quarantine_replay(struct cli *cli, const struct args *args);
int run_quarantine_show(struct cli *cli, const struct args *args);
int run_reload(struct cli *cli, const struct args *args);
int run_route_list(struct cli *cli, const struct args *args);
int run_route_pause(struct cli *cli, const struct args *args);
int run_route_resume(struct cli *cli, const struct args *args);
int run_route_show(struct cli *cli, const struct args *args);
int run_run(struct cli *cli, const struct args *args);
int run_task_add(struct cli *cli, const struct args *args);
int run_task_cancel(struct cli *cli, const struct args *args);
int run_task_list(struct cli *cli, const struct args *args);
int run_task_reschedule(struct cli *cli, const struct args *args);
int run_task_result(struct cli *cli, const struct args *args);
int run_task_retry(struct cli *cli, const struct args *args);
int run_task_set(struct cli *cli, const struct args *args);
int run_task_show(struct cli *cli, const struct args *args);
int run_version(struct cli *cli, const struct args *args);

#endif
