/* SPDX-License-Identifier: MIT
 *
 * cli/quarantine.c - `duebox quarantine list|show|replay|purge`: result records that fitted nothing, or were flawed.
 *
 * Replaying gives a record to the same rules as a daemon; it leaves the quarantine where it counts then.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "cli/cli.h"
#include "cli/result.h"
#include "cli/rows.h"
#include "cli/times.h"
#include "core/result_origin.h"

enum { LIST_LIMIT = 100, BODY_SHOWN = 200, BODY_KEPT = 4096 };

/* --- list and show --- */

static bool list_row(void *ctx, const struct field *fields, size_t count) {
  return listing_add(ctx, row_json(fields, count, true)) && !output_unwanted();
}

int run_quarantine_list(struct cli *cli, const struct args *args) {
  static const struct column columns[] = {
      {"id", "ID", CELL_NUMBER, false},      {"received_at", "RECEIVED", CELL_TIME, false},
      {"source", "SOURCE", CELL_TEXT, true}, {"origin", "ORIGIN", CELL_TEXT, true},
      {"seen", "SEEN", CELL_NUMBER, false},  {"reason", "REASON", CELL_TEXT, true},
      {"body", "BODY", CELL_TEXT, true},
  };
  const struct operator* op;
  struct err err = {0};
  int64_t limit = LIST_LIMIT;
  if (!args_int(args, OPT_LIMIT, 0, INT64_MAX, &limit, &err))
    return cli_fail_err(&err);
  int code = cli_operator(cli, &op);
  if (code)
    return code;
  struct listing *listing = listing_open(&cli->output, columns, ARRAY_LEN(columns));
  if (!listing)
    return cli_fail(EX_OSERR, "out of memory");
  enum store_status status = op->ops->quarantine(op->self, 0, (uint64_t)limit, BODY_SHOWN, list_row, listing, &err);
  listing_close(listing, status == STORE_OK ? "the quarantine is empty" : NULL);
  return status == STORE_OK ? EX_OK : cli_fail_store(status, &err);
}

static bool parse_id(const char *text, uint64_t *id) {
  char *end;
  errno = 0;
  *id = strtoull(text, &end, 10);
  return *text >= '1' && *text <= '9' && !*end && !errno;
}

static bool keep_row(void *ctx, const struct field *fields, size_t count) {
  json_t **row = ctx;
  *row = row_json(fields, count, false);
  return *row != NULL;
}

/* Of all operands, before anything is done with the first. Exit code. */
static int check_ids(const struct args *args) {
  uint64_t id;
  for (int i = 0; i < args->operand_count; i++)
    if (!parse_id(args->operands[i], &id))
      return cli_fail(EX_USAGE, "\"%s\" is no number of a quarantined record; `duebox quarantine list` has them",
                      args->operands[i]);
  return EX_OK;
}

/* The record of that number, whose reference is the caller's. Exit code. */
static int find(const struct operator* op, const char *text, uint64_t *id, json_t **row) {
  struct err err = {0};
  *row = NULL;
  (void)parse_id(text, id);
  enum store_status status = op->ops->quarantine(op->self, *id, 1, BODY_KEPT, keep_row, row, &err);
  if (status != STORE_OK)
    return cli_fail_store(status, &err);
  return *row ? EX_OK : cli_fail(EX_NOINPUT, "quarantine %s: not found", text);
}

int run_quarantine_show(struct cli *cli, const struct args *args) {
  static const struct column columns[] = {
      {"id", "id", CELL_TEXT, false},         {"received_at", "received", CELL_TIME, false},
      {"source", "source", CELL_TEXT, false}, {"origin", "origin", CELL_TEXT, false},
      {"reason", "reason", CELL_TEXT, false}, {"seen", "seen", CELL_TEXT, false},
      {"length", "bytes", CELL_TEXT, false},  {"sha256", "sha256", CELL_TEXT, false},
      {"body", "body", CELL_LINES, false},    {"body_base64", "body (base64)", CELL_LINES, false},
  };
  const struct operator* op;
  json_t *row;
  uint64_t id;
  int code = check_ids(args);
  if (code || (code = cli_operator(cli, &op)))
    return code;
  if ((code = find(op, args->operands[0], &id, &row)) == EX_OK)
    output_record(&cli->output, columns, ARRAY_LEN(columns), row);
  return code;
}

/* --- replay and purge --- */

static int forget(const struct operator* op, uint64_t id, int64_t before_us, const char *reason, uint64_t *forgotten) {
  char actor[128];
  struct err err = {0};
  cli_actor(actor, sizeof actor);
  enum store_status status =
      op->ops->quarantine_forget(op->self, id, before_us, actor, reason ? reason : "", forgotten, &err);
  return status == STORE_OK ? EX_OK : cli_fail_store(status, &err);
}

static const char *text_of(const json_t *row, const char *name) {
  const char *text = json_string_value(json_object_get(row, name));
  return text ? text : "";
}

static int replay(struct cli *cli, const struct operator* op, const char *text) {
  const struct config *config;
  struct store_result result = {.replayed = true};
  struct record_road road;
  char message_id[RECORD_ID_MAX + 1];
  json_t *row;
  uint64_t id, forgotten;
  char name[48];
  snprintf(name, sizeof name, "quarantine %s", text);
  int code = find(op, text, &id, &row);
  if (code == EX_OK)
    code = cli_config(cli, &config);
  const char *body = json_string_value(json_object_get(row, "body"));
  if (code == EX_OK && (!body || json_integer_value(json_object_get(row, "length")) > BODY_KEPT))
    code = cli_fail(EX_DATAERR,
                    "quarantine %s: only the first %d bytes are kept, or it is no text; answer by `duebox task result`",
                    text, BODY_KEPT);
  if (code == EX_OK && !result_origin_road(text_of(row, "source"), text_of(row, "origin"), &road, message_id))
    code = cli_fail(EX_DATAERR, "quarantine %s: %s", text, result_origin_settled);
  if (code == EX_OK)
    code = result_settle_directly(config, body, &road, "duebox quarantine replay", name, &result);
  if (code == EX_OK && result.contradicts)
    code = cli_fail(EX_DATAERR, "quarantine %s: its task took the opposite for a fact; nothing was changed", text);
  if (code == EX_OK) {
    code = result_tell_fate(cli, "quarantine", text, &result);
    int gone = code == EX_OK || result.fate == RESULT_APPLIED ? forget(op, id, 1, "replayed", &forgotten) : EX_OK;
    code = code ? code : gone;
  }
  json_decref(row);
  return code;
}

/* 75 is worse than 65, and that than 66; what is none of them is worse than all. */
static int worse_of(int a, int b) {
  static const int order[] = {EX_OK, EX_NOINPUT, EX_DATAERR, EX_TEMPFAIL};
  size_t ranks[2] = {ARRAY_LEN(order), ARRAY_LEN(order)};
  for (size_t i = 0; i < ARRAY_LEN(order); i++) {
    ranks[0] = a == order[i] ? i : ranks[0];
    ranks[1] = b == order[i] ? i : ranks[1];
  }
  return ranks[1] > ranks[0] ? b : a;
}

int run_quarantine_replay(struct cli *cli, const struct args *args) {
  const struct operator* op;
  int code = check_ids(args);
  if (code || (code = cli_operator(cli, &op)))
    return code;
  for (int i = 0; i < args->operand_count; i++) {
    int one = replay(cli, op, args->operands[i]);
    code = worse_of(code, one);
  }
  return code;
}

int run_quarantine_purge(struct cli *cli, const struct args *args) {
  const struct operator* op;
  const char *reason = args_text(args, OPT_REASON);
  struct when when = {0};
  struct err err = {0};
  uint64_t id, forgotten, all = 0;
  int64_t before_us = 1;
  int missing = EX_OK;
  bool by_age = args_has(args, OPT_CREATED_BEFORE);
  if (by_age == (args->operand_count > 0))
    return cli_fail(EX_USAGE, "quarantine purge: give numbers, or --created-before TIME");
  if (by_age && !args_has(args, OPT_YES))
    return cli_fail(EX_USAGE, "quarantine purge: --created-before needs --yes");
  if (by_age && !args_when(args, OPT_CREATED_BEFORE, &when, &err))
    return cli_fail_err(&err);
  int code = check_ids(args);
  if (code || (code = cli_operator(cli, &op)))
    return code;
  if (by_age && (code = cli_when(cli, &when, &before_us)) == EX_OK)
    code = forget(op, 0, before_us, reason, &all);
  for (int i = 0; code == EX_OK && i < args->operand_count; i++) {
    (void)parse_id(args->operands[i], &id);
    code = forget(op, id, 1, reason, &forgotten);
    if (code == EX_OK && forgotten == 0)
      missing = cli_fail(EX_NOINPUT, "quarantine %s: not found", args->operands[i]);
    all += code == EX_OK ? forgotten : 0;
  }
  if (code)
    return code;
  if (cli->output.format == OUTPUT_TEXT)
    printf("%llu purged\n", (unsigned long long)all);
  else
    output_record(&cli->output, NULL, 0, json_pack("{s:I}", "purged", (json_int_t)all));
  return missing;
}
