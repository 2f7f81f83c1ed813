/* SPDX-License-Identifier: MIT
 *
 * cli/config.c - `duebox config show` and `duebox check`: the configuration, as it is and whether it holds.
 */
#include <sysexits.h>

#include "admin/admin.h"
#include "cli/cli.h"
#include "core/config_show.h"
#include "outbox/db_conn.h"

int run_config_show(struct cli *cli, const struct args *args) {
  static const enum config_format formats[] = {
      [OUTPUT_TEXT] = CONFIG_YAML, [OUTPUT_JSON] = CONFIG_JSON, [OUTPUT_JSONL] = CONFIG_JSON_LINE};
  const struct config *config;
  int code = cli_config(cli, &config);
  if (code)
    return code;
  config_show(config, formats[cli->output.format], stdout);
  return EX_OK;
}

/* The database as people name it: "shop.outbox at 127.0.0.1:3306". */
static json_t *database_json(const struct database_config *database) {
  char place[256];
  db_place(database, place, sizeof place);
  return json_sprintf("%s.%s at %s", database->name, database->table, place);
}

static void print_finding(void *ctx, const char *text) { cli_fail(EX_CONFIG, "%s", text); }

/* As cli_config(), with everything that is wrong. */
static int examine(struct cli *cli, const struct config **out) {
  struct err err = {0};
  if (!cli->config_path)
    return cli_config(cli, out); /* which says how to give one */
  cli_modules(cli);
  if (!config_examine(cli->config_path, cli->modules, print_finding, NULL, &cli->config, &err))
    return EX_CONFIG;
  *out = cli->config;
  return EX_OK;
}

int run_check(struct cli *cli, const struct args *args) {
  static const struct column columns[] = {
      {"config", "configuration", CELL_TEXT, false},   {"result", "result", CELL_STATE, false},
      {"plugins", "plugins", CELL_TEXT, false},        {"routes", "routes", CELL_TEXT, false},
      {"sources", "result sources", CELL_TEXT, false}, {"database", "database", CELL_TEXT, false},
      {"connected", "connected", CELL_STATE, false},   {"admin", "admin listener", CELL_TEXT, false}};
  const struct config *config;
  struct err err = {0};
  int code = examine(cli, &config);
  if (code)
    return code;
  if (config->admin.host && !admin_check(&config->admin, &err))
    return cli_fail(EX_CONFIG, "%s: %s", cli->config_path, err.text);
  if (args_has(args, OPT_CONNECT)) {
    const struct operator* op;
    if ((code = cli_operator(cli, &op)))
      return code;
  }
  output_record(&cli->output, columns, ARRAY_LEN(columns),
                json_pack("{s:s, s:s, s:i, s:i, s:i, s:o, s:o, s:s?}", "config", cli->config_path, "result", "ok",
                          "plugins", (int)config->plugin_count, "routes", (int)config->route_count, "sources",
                          (int)config->source_count, "database", database_json(&config->database), "connected",
                          args_has(args, OPT_CONNECT) ? json_true() : json_null(), "admin",
                          config->admin.host ? config->admin.url : NULL));
  return EX_OK;
}
