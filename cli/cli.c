/* SPDX-License-Identifier: MIT */
#include "cli/cli.h"

#include <errno.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "cli/text.h"
#include "core/modules.h"
#include "core/task_time.h"
#include "outbox/db_conn.h"
#include "outbox/db_error.h"
#include "outbox/operator.h"

static int choose_format(const char *word, enum output_format *format) {
  static const char *const words[] = {"text", "json", "jsonl"};
  for (size_t i = 0; word && i < ARRAY_LEN(words); i++)
    if (strcmp(words[i], word) == 0) {
      *format = (enum output_format)i;
      return EX_OK;
    }
  if (word)
    return cli_fail(EX_USAGE, "--output: \"%s\" is none of text, json, jsonl", word);
  return EX_OK;
}

static bool is_set(const char *variable) {
  const char *value = getenv(variable);
  return value && *value;
}

/* --color wins, then NO_COLOR (no-color.org), CLICOLOR_FORCE and CLICOLOR (bixense.com/clicolors), then the terminal.
 */
static int choose_color(const char *word, bool *color) {
  const char *clicolor = getenv("CLICOLOR"), *force = getenv("CLICOLOR_FORCE"), *term = getenv("TERM");
  bool terminal = isatty(STDOUT_FILENO) && term && strcmp(term, "dumb") != 0;
  if (!word || strcmp(word, "auto") == 0)
    *color = !is_set("NO_COLOR") &&
             ((force && *force && strcmp(force, "0") != 0) || (terminal && !(clicolor && strcmp(clicolor, "0") == 0)));
  else if (strcmp(word, "always") == 0 || strcmp(word, "never") == 0)
    *color = word[0] == 'a';
  else
    return cli_fail(EX_USAGE, "--color: \"%s\" is none of auto, always, never", word);
  return EX_OK;
}

static const char *find_config(const char *given) {
  static const char *const places[] = {"duebox.yaml", "/etc/duebox/duebox.yaml"};
  if (given)
    return given;
  if (is_set("DUEBOX_CONFIG"))
    return getenv("DUEBOX_CONFIG");
  for (size_t i = 0; i < ARRAY_LEN(places); i++)
    if (access(places[i], F_OK) == 0)
      return places[i];
  return NULL;
}

int cli_open(struct cli *cli, const struct args *args) {
  *cli = (struct cli){.config_path = find_config(args_text(args, OPT_CONFIG))};
  cli->output.quiet = args_has(args, OPT_QUIET);
  int code = choose_format(args_text(args, OPT_OUTPUT), &cli->output.format);
  return code ? code : choose_color(args_text(args, OPT_COLOR), &cli->output.color);
}

void cli_modules(struct cli *cli) {
  if (!cli->modules)
    cli->modules = modules_new();
}

int cli_config(struct cli *cli, const struct config **out) {
  struct err err = {0};
  if (!cli->config_path)
    return cli_fail(EX_CONFIG, "no configuration file: give one with --config FILE, set DUEBOX_CONFIG, or write "
                               "./duebox.yaml or /etc/duebox/duebox.yaml");
  cli_modules(cli);
  if (!cli->config && !config_load(cli->config_path, cli->modules, &cli->config, &err))
    return cli_fail(EX_CONFIG, "%s", err.text);
  *out = cli->config;
  return EX_OK;
}

enum store_status cli_connect(struct cli *cli, const struct config *config, const struct operator** out,
                              struct err *err) {
  enum store_status status = STORE_OK;
  if (!cli->op.ops)
    status = db_init(err) ? outbox_operator_open(&config->database, &cli->op, err) : STORE_DOWN;
  *out = &cli->op;
  return status;
}

int cli_operator(struct cli *cli, const struct operator** out) {
  const struct config *config = NULL;
  struct err err = {0};
  int code = cli_config(cli, &config);
  if (code)
    return code;
  enum store_status status = cli_connect(cli, config, out, &err);
  return status == STORE_OK ? EX_OK : cli_fail_store(status, &err);
}

int cli_when(struct cli *cli, const struct when *when, int64_t *us) {
  const struct operator* op;
  struct err err = {0};
  *us = when->us;
  if (!when->relative)
    return EX_OK;
  int code = cli_operator(cli, &op);
  if (code)
    return code;
  enum store_status status = cli->now_us ? STORE_OK : op->ops->now(op->self, &cli->now_us, &err);
  *us = cli->now_us + when->us;
  return status == STORE_OK ? EX_OK : cli_fail_store(status, &err);
}

int cli_task_time(struct cli *cli, const struct when *when, const char *what, int64_t *us) {
  struct err err = {0};
  int code = cli_when(cli, when, us);
  if (code == EX_OK && when->given && !task_time_valid(*us, what, &err))
    code = cli_fail(EX_DATAERR, "%s", err.text);
  return code;
}

/* Under sudo the person counts, not root. */
void cli_actor(char *out, size_t cap) {
  const struct passwd *user = getpwuid(geteuid());
  const char *name = geteuid() == 0 && is_set("SUDO_USER") ? getenv("SUDO_USER") : user ? user->pw_name : "?";
  char host[65] = "";
  gethostname(host, sizeof host - 1);
  snprintf(out, cap, "%s@%s", name, host);
}

int cli_flush(void) {
  if (fflush(stdout) == 0 && !ferror(stdout))
    return EX_OK;
  if (output_unwanted()) /* `| head`, say: it has all that it wanted */
    return EX_OK;
  return cli_fail(EX_IOERR, "standard output: %s; what was printed is incomplete", strerror(errno));
}

int cli_close(struct cli *cli) {
  if (cli->op.ops)
    cli->op.ops->close(cli->op.self);
  if (!cli->outlived)
    config_free(&cli->config);
  if (cli->modules && !cli->outlived)
    modules_free(&cli->modules);
  return cli_flush();
}

void cli_leave(int code) {
  fflush(NULL);
  _exit(code);
}

static void print_message(const char *prefix, const char *fmt, va_list args) {
  char text[2048];
  vsnprintf(text, sizeof text, fmt, args);
  char *safe = text_safe(text, strlen(text), TEXT_KEEP_LINES);
  fprintf(stderr, "%s%s\n", prefix, safe ? safe : "out of memory");
  free(safe);
}

int cli_fail(int code, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  print_message("duebox: ", fmt, args);
  va_end(args);
  return code;
}

int cli_fail_err(const struct err *err) { return cli_fail(err->code, "%s", err->text); }

/* Wrong rights and wrong values are told from a wrong configuration by the server's error number. */
int cli_store_code(enum store_status status, const struct err *err) {
  enum { SIGNALLED = 1644 }; /* by a trigger, which refuses what would be written */
  if (status == STORE_REFUSED && err->code == OPERATOR_E_AMBIGUOUS)
    return EX_DATAERR;
  if (status == STORE_REFUSED && err->denied)
    return EX_NOPERM;
  if (status == STORE_REFUSED && (db_error_is_value(err->code) || err->code == SIGNALLED))
    return EX_DATAERR;
  return status == STORE_DOWN ? EX_UNAVAILABLE : status == STORE_BUSY ? EX_TEMPFAIL : EX_CONFIG;
}

const char *cli_store_text(const struct err *err) {
  static const struct {
    const char *column, *limit;
  } limits[] = {
      {"message_id", "a message id has 1 to 64 visible ASCII characters"},
      {"route", "the name of a route has 1 to 64 visible ASCII characters"},
      {"task_key", "a key has at most 255 characters"},
      {"order_key", "an order key has at most 255 characters"},
      {"dedup_key", "a dedup key has 1 to 255 characters"},
      {"target_host", "the name of a host has at most 64 characters, and no blank at its end"},
      {"delay_ms", "a delay is at most ten years (3650d)"},
      {"due_at", "a due time is a day of the calendar, in the years 2000 to 2199"},
      {"expires_at", "a time to expire at is a day of the calendar, in the years 2000 to 2199"},
  };
  static const char *const quotes[] = {"_`", "_'", "''"}; /* CHECKs of MariaDB and MySQL; columns */
  bool refused = err->code == 1406 || err->code == 3819 || err->code == 4025;
  for (size_t i = 0; refused && i < ARRAY_LEN(limits); i++)
    for (size_t k = 0; k < ARRAY_LEN(quotes); k++) {
      char name[32];
      snprintf(name, sizeof name, "%c%s%c", quotes[k][0], limits[i].column, quotes[k][1]);
      if (strstr(err->text, name))
        return limits[i].limit;
    }
  return err->text;
}

int cli_fail_store(enum store_status status, const struct err *err) {
  return cli_fail(cli_store_code(status, err), "%s", cli_store_text(err));
}

void cli_remark(const struct cli *cli, const char *fmt, ...) {
  if (cli->output.quiet)
    return;
  va_list args;
  va_start(args, fmt);
  print_message("", fmt, args);
  va_end(args);
}
