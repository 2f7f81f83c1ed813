/* SPDX-License-Identifier: MIT
 *
 * cli/reload.c - `duebox reload`: the daemon on this machine loads its configuration again, or changes nothing.
 */
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
    cli_remark(cli, "reloaded");
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

int run_reload(struct cli *cli, const struct args *args) {
  const struct config *config;
  struct daemon_client *client;
  struct daemon_answer answer;
  struct err err = {0};
  int code = cli_config(cli, &config);
  if (code)
    return code;
  if (!config->admin.host)
    return cli_fail(EX_CONFIG, "admin.listen is off in %s: send the daemon a SIGHUP instead", cli->config_path);
  if (!daemon_client_new(&config->admin, &client, &err))
    return cli_fail_err(&err);
  if (daemon_ask(client, config->admin.url, "/api/v1/reload", DAEMON_RELOADED, "{}", RELOAD_TIMEOUT_MS, &answer, &err))
    code = judge(cli, config->admin.url, &answer);
  else
    code = cli_fail(EX_UNAVAILABLE, "no daemon answers: %s", err.text);
  json_decref(answer.body);
  daemon_client_free(&client);
  return code;
}
