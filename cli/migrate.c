/* SPDX-License-Identifier: MIT
 *
 * cli/migrate.c - `duebox migrate`: creates and updates the tables.
 */
#include <string.h>
#include <sysexits.h>

#include "cli/cli.h"
#include "outbox/db_conn.h"
#include "outbox/db_error.h"
#include "outbox/schema.h"

/* Needs no database; without a configuration the table has its usual name. */
static int show_sql(struct cli *cli, uint32_t shards) {
  const char *table = "outbox";
  struct err err = {0};
  if (cli->config_path) {
    const struct config *config;
    int code = cli_config(cli, &config);
    if (code)
      return code;
    table = config->database.table;
  }
  return schema_print(table, shards ? shards : SCHEMA_SHARDS_DEFAULT, stdout, &err)
             ? EX_OK
             : cli_fail(EX_SOFTWARE, "%s", err.text);
}

static int fail(const struct err *err) { return cli_fail_store(db_class_status(db_error_class(err->code)), err); }

static int show_status(const struct cli *cli, struct db_conn *conn) {
  static const struct column columns[] = {{"version", "version", CELL_TEXT, false},
                                          {"latest", "latest", CELL_TEXT, false},
                                          {"shards", "shards", CELL_TEXT, false},
                                          {"up_to_date", "up to date", CELL_STATE, false},
                                          {"to_repair", "to repair", CELL_TEXT, false}};
  struct schema_status status;
  struct err err = {0};
  if (!schema_status(conn, &status, &err))
    return fail(&err);
  bool right = !status.repair[0];
  output_record(&cli->output, columns, ARRAY_LEN(columns) - right,
                json_pack("{s:i, s:i, s:i, s:b, s:s*}", "version", (int)status.version, "latest", (int)status.latest,
                          "shards", (int)status.shards, "up_to_date", right && status.version == status.latest,
                          "to_repair", right ? NULL : status.repair));
  return EX_OK;
}

int run_migrate(struct cli *cli, const struct args *args) {
  const struct config *config;
  struct db_conn *conn;
  struct err err = {0};
  int64_t shards = 0;
  bool status = args->operand_count > 0;
  if (status && strcmp(args->operands[0], "status") != 0)
    return cli_fail(EX_USAGE, "migrate: \"%s\" is not known; there is `duebox migrate` and `duebox migrate status`",
                    args->operands[0]);
  if (status && (args_has(args, OPT_DRY_RUN) || args_has(args, OPT_SHOW_SQL) || args_has(args, OPT_SHARDS)))
    return cli_fail(EX_USAGE,
                    "migrate status: it changes nothing, and takes neither --dry-run nor --show-sql nor --shards");
  if (!args_int(args, OPT_SHARDS, 1, SHARD_BOUND, &shards, &err))
    return cli_fail_err(&err);
  if (args_has(args, OPT_SHOW_SQL))
    return show_sql(cli, (uint32_t)shards);
  int code = cli_config(cli, &config);
  if (code)
    return code;
  if (config->database.migrate_unread)
    return cli_fail(EX_CONFIG, "migrate: %s: run it as a user who may", config->database.migrate_unread);
  if (!db_init(&err) || !db_open(&config->database, DB_MIGRATE, "migrate", &conn, &err))
    return fail(&err);
  struct migrate_options options = {.shards = (uint32_t)shards, .dry_run = args_has(args, OPT_DRY_RUN)};
  bool text = cli->output.format == OUTPUT_TEXT;
  if (!status && !schema_migrate(conn, &options, text ? stdout : stderr, &err))
    code = fail(&err);
  else if (status || !text)
    code = show_status(cli, conn);
  db_close(&conn);
  return code;
}
