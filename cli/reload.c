/* SPDX-License-Identifier: MIT
 *
 * cli/reload.c - `duebox reload`: the daemon on this machine loads its configuration again, or changes nothing.
 */
#include <string.h>
#include <sysexits.h>

#include "cli/cli.h"
#include "cli/daemon.h"

enum {
  RELOAD_TIMEOUT_MS = 30000,
  HTTP_OK = 200,
  HTTP_UNAUTHORIZED = 401,
  HTTP_FORBIDDEN = 403,
  HTTP_UNPROCESSABLE = 422
};

static int judge(const struct cli *cli, const char *url, const struct daemon_answer *answer) {
  switch (answer->status) {
  case HTTP_OK:
    if (cli->output.format == OUTPUT_TEXT)
      cli_remark(cli, "reloaded");
    else
      output_record(&cli->output, NULL, 0, json_pack("{s:b, s:s}", "reloaded", true, "daemon", url));
    return EX_OK;
  case HTTP_UNPROCESSABLE:
    return cli_fail(EX_CONFIG, "the daemon at %s refuses: %s", url, answer->detail);
  case HTTP_UNAUTHORIZED:
  case HTTP_FORBIDDEN:
    return cli_fail(EX_NOPERM, "the daemon at %s refuses: %s; admin.token_file must hold the daemon's token", url,
                    answer->detail);
  default:
    return cli_fail(EX_UNAVAILABLE, "the daemon at %s did not reload: %s", url, answer->detail);
  }
}

static bool ask(const struct config *config, const struct operator* op, struct daemon_answer *answer, struct err *err) {
  struct daemon_client *client;
  *answer = (struct daemon_answer){0};
  if (!daemon_client_new(&config->admin, op, &client, err))
    return false;
  bool answered =
      daemon_ask(client, config->admin.url, "/api/v1/reload", DAEMON_RELOADED, "{}", RELOAD_TIMEOUT_MS, answer, err);
  daemon_client_free(&client);
  return answered;
}

/* One of the two could not ask its database, which a reload must not need. */
static bool is_unsure(bool answered, const struct daemon_answer *answer) {
  return answered ? strcmp(answer->code, "database") == 0 || strcmp(answer->code, "rights") == 0
                  : answer->status == DAEMON_UNNAMED;
}

int run_reload(struct cli *cli, const struct args *args) {
  const struct config *config;
  const struct operator* op;
  struct daemon_answer answer = {0};
  struct err err = {0};
  int code = cli_config(cli, &config);
  if (code)
    return code;
  if (!config->admin.host)
    return cli_fail(EX_CONFIG, "admin.listen is off in %s: send the daemon a SIGHUP instead", cli->config_path);
  bool answered = cli_connect(cli, config, &op, &err) == STORE_OK && ask(config, op, &answer, &err);
  if (!cli->op.ops || is_unsure(answered, &answer)) {
    cli_remark(cli, "whether the daemon at %s works on this outbox was not checked: %s", config->admin.url,
               answered ? answer.detail : err.text);
    json_decref(answer.body);
    answered = ask(config, NULL, &answer, &err);
  }
  if (answered)
    code = judge(cli, config->admin.url, &answer);
  else
    code = cli_fail(EX_UNAVAILABLE, answer.status == DAEMON_OTHER ? "%s" : "no daemon answers: %s", err.text);
  json_decref(answer.body);
  return code;
}
