/* SPDX-License-Identifier: MIT
 *
 * cli/task_result.c - `duebox task result`: the answer of a consumer, given by hand.
 *
 * A running daemon is asked first. Where none gives a definite answer the result is written directly, by the same code
 * and rules as in a daemon: a result changes a row at most once, so offering it twice does no harm.
 */
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "cli/cli.h"
#include "cli/daemon.h"
#include "cli/result.h"
#include "core/base/random.h"
#include "core/base/shell.h"
#include "core/base/sync.h"
#include "core/record.h"
#include "core/rules.h"
#include "outbox/outbox.h"

enum {
  RESULT_TIMEOUT_MS = 15000,
  HTTP_OK = 200,
  HTTP_BAD_REQUEST = 400,
  HTTP_NOT_FOUND = 404,
  HTTP_CONFLICT = 409,
  HTTP_ERROR = 500 /* and what follows: the daemon's trouble */
};

/* --- the record --- */

static bool add_error(json_t *record, const struct args *args) {
  const char *class = args_text(args, OPT_ERROR_CLASS), *message = args_text(args, OPT_ERROR_MESSAGE);
  if (!class && !message)
    return true;
  return json_object_set_new(record, "error", json_pack("{s:s*, s:s*}", "class", class, "message", message)) == 0;
}

/* The record of "What a consumer answers", as text to free(). `result` goes in as it was typed: no number loses digits.
 */
static char *make_text(const json_t *record, const char *result, struct err *err) {
  json_error_t where;
  json_t *value = result ? json_loads(result, JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL, &where) : NULL;
  if (result && !value) {
    err_set(err, EX_DATAERR, "--result: no JSON: column %d: %s", where.column, where.text);
    return NULL;
  }
  json_decref(value);
  char *head = json_dumps(record, JSON_COMPACT), *text = NULL;
  int ok = -1;
  if (head && result)
    ok = asprintf(&text, "%.*s,\"result\":%s}", (int)strlen(head) - 1, head, result);
  else if (head)
    ok = asprintf(&text, "%s", head);
  free(head);
  if (ok < 0) {
    err_set(err, EX_OSERR, "out of memory");
    return NULL;
  }
  return text;
}

static char *make_record(const struct args *args, const char *message_id, struct err *err) {
  int64_t attempt = 0, retry_in_ms = -1;
  if (!args_int(args, OPT_ATTEMPT, 1, UINT32_MAX, &attempt, err) ||
      !args_duration(args, OPT_RETRY_IN, &retry_in_ms, err))
    return NULL;
  json_t *record = json_pack("{s:s, s:I, s:s}", "id", message_id, "attempt", (json_int_t)attempt, "status",
                             args_text(args, OPT_STATUS));
  char *text = NULL;
  if (!record || !add_error(record, args))
    err_set(err, EX_DATAERR, "the id, --error-class or --error-message is not UTF-8");
  else if (retry_in_ms >= 0 && json_object_set_new(record, "retry_in_ms", json_integer(retry_in_ms)) != 0)
    err_set(err, EX_OSERR, "out of memory");
  else
    text = make_text(record, args_text(args, OPT_RESULT), err);
  json_decref(record);
  return text;
}

/* Of a consumer's record with a flaw the status counts all the same; a person mends the line. */
static bool check_record(const char *text, struct err *err) {
  struct result_record record = {0};
  const struct record_road road = {.checkpoint_max = SIZE_MAX};
  bool ok = result_record_parse(text, strlen(text), &road, &record, err) &&
            (!record.flaw || err_set(err, EX_DATAERR, "%s", record.flaw));
  result_record_free(&record);
  if (!ok) {
    err_wrap(err, "the result record");
    err->code = EX_DATAERR;
  }
  return ok;
}

/* --- by a daemon --- */

struct daemons {
  struct daemon_client *client;
  const char *record;          /* JSON text */
  struct daemon_answer answer; /* definite when status is not 0 */
  char url[2052];              /* who gave it, or was asked last */
  bool may_have;               /* one has the record, and does not know yet whether it counts */
};

static bool is_definite(long status) {
  return status == HTTP_OK || status == HTTP_BAD_REQUEST || status == HTTP_NOT_FOUND || status == HTTP_CONFLICT;
}

static bool try_daemon(struct daemons *daemons, const char *url) {
  struct err ignored;
  snprintf(daemons->url, sizeof daemons->url, "%s", url);
  if (!*url || is_definite(daemons->answer.status))
    return false;
  json_decref(daemons->answer.body);
  bool answered = daemon_ask(daemons->client, url, "/api/v1/results", DAEMON_FATE, daemons->record, RESULT_TIMEOUT_MS,
                             &daemons->answer, &ignored);
  daemons->may_have |= answered ? daemons->answer.status >= HTTP_ERROR : daemons->answer.status >= 0;
  if (!answered)
    daemons->answer.status = 0;
  return is_definite(daemons->answer.status);
}

static bool try_instance(void *ctx, const struct field *fields, size_t count) {
  char url[2052] = "";
  bool alive = false;
  for (size_t i = 0; i < count; i++) {
    if (strcmp(fields[i].name, "url") == 0)
      snprintf(url, sizeof url, "%.*s", (int)fields[i].text.len, fields[i].text.data);
    if (strcmp(fields[i].name, "alive") == 0)
      alive = fields[i].number != 0;
    if (strcmp(fields[i].name, "kind") == 0 && strncmp(fields[i].text.data, "daemon", fields[i].text.len) != 0)
      return true;
  }
  return !(alive && try_daemon(ctx, url));
}

/* --- directly --- */

static enum store_status settle(struct store_session *session, const struct store *store, const struct config *config,
                                struct store_result *result, struct err *err) {
  struct rules_context context = {.config = config, .random = random_u64()};
  enum store_status status = store->ops->now(session, &context.now_us, err);
  return status != STORE_OK ? status : store->ops->settle_results(session, result, 1, rules_result, &context, err);
}

int result_settle_directly(const struct config *config, const char *record, const struct record_road *known,
                           const char *origin, const char *name, struct store_result *result) {
  struct store store;
  struct store_session *session = NULL;
  struct err err = {0};
  int code = EX_OK;
  struct record_road road = *known;
  road.checkpoint_max = (size_t)config->engine.max_checkpoint;
  if (!result_record_parse(record, strlen(record), &road, &result->record, &err))
    return cli_fail(EX_DATAERR, "%s: the result record: %s", name, err.text);
  result->record.is_awaited = true;
  result->source = "cli";
  result->origin = origin;
  result->replied = true;
  result->body = (struct duebox_bytes){record, strlen(record)};
  if (!outbox_create(&config->database, &store, &err)) {
    result_record_free(&result->record);
    return cli_fail(EX_OSERR, "%s", err.text);
  }
  enum store_status status = store.ops->open(store.self, "result", 0, &session, &err);
  if (status == STORE_OK)
    status = settle(session, &store, config, result, &err);
  if (status != STORE_OK)
    code = cli_fail_store(status, &err);
  if (session)
    store.ops->close(&session);
  outbox_destroy(&store);
  result_record_free(&result->record);
  return code;
}

/* --- the command --- */

static int tell(const struct cli *cli, const char *id, const char *fate) {
  if (cli->output.format != OUTPUT_TEXT)
    output_record(&cli->output, NULL, 0, json_pack("{s:s, s:s}", "id", id, "fate", fate));
  else if (strcmp(fate, "duplicate") == 0)
    printf("%s  this attempt has had its result; nothing was changed\n", id);
  else
    printf("%s  %s\n", id, fate);
  return EX_OK;
}

/* A wait that is longer than its route allows is cut, as a consumer's is: a mistaken unit parks no task for years. */
static void tell_capped(const struct cli *cli, const char *noun, const char *id, bool capped) {
  if (capped)
    cli_remark(cli, "%s %s: it waits no longer than its route allows: give_up, or 30d without", noun, id);
}

/* Whoever answers by hand takes success for "the task is now what I said". */
static int tell_taken(const struct cli *cli, const char *noun, const char *id, const char *fate, bool differs) {
  if (!differs)
    return tell(cli, id, fate);
  if (strcmp(fate, "duplicate") == 0)
    return cli_fail(EX_DATAERR,
                    "%s %s: this attempt has ended already, and otherwise than this result says; nothing was changed. "
                    "`duebox task show` tells how",
                    noun, id);
  return cli_fail(
      EX_DATAERR,
      "%s %s: the result counts, but the task came to something else: it was changed since, or its attempts "
      "are used up. `duebox task show` tells",
      noun, id);
}

static int tell_answer(const struct cli *cli, const char *id, const struct daemon_answer *answer) {
  switch (answer->status) {
  case HTTP_OK:
    tell_capped(cli, "task", id, json_is_true(json_object_get(answer->body, "capped")));
    return tell_taken(cli, "task", id, json_string_value(json_object_get(answer->body, "fate")),
                      json_is_true(json_object_get(answer->body, "differs")));
  case HTTP_NOT_FOUND:
    return cli_fail(EX_NOINPUT, "task %s: %s", id, answer->detail);
  default:
    return cli_fail(EX_DATAERR, "task %s: %s", id, answer->detail);
  }
}

int result_tell_fate(const struct cli *cli, const char *noun, const char *id, const struct store_result *result) {
  if (result->unsent)
    return cli_fail(EX_DATAERR, "%s %s: %s; nothing was changed", noun, id,
                    result_unsent_text(result->record.too_soon));
  switch (result->fate) {
  case RESULT_APPLIED:
    tell_capped(cli, noun, id, result->capped);
    return tell_taken(cli, noun, id, "applied", result->differs);
  case RESULT_DUPLICATE:
    return tell_taken(cli, noun, id, "duplicate", result->differs);
  case RESULT_STALE:
    return cli_fail(EX_DATAERR, "%s %s: %s", noun, id,
                    result_stale_text(result->record.status, result->record.current_only));
  case RESULT_LATE:
    return cli_fail(EX_DATAERR, "%s %s: it has ended; nothing was changed", noun, id);
  case RESULT_BUSY:
    return cli_fail(EX_TEMPFAIL, "%s %s: its row is in use; nothing was changed, give the result again", noun, id);
  case RESULT_BROKEN:
    return result->form == DECISION_FORMS
               ? cli_fail(EX_DATAERR, "%s %s: %s; nothing was changed", noun, id, result->refusal)
               : cli_fail(EX_DATAERR,
                          "%s %s: nothing was changed: the result is too large for max_allowed_packet of the server, "
                          "or the task's row has a value that the table does not allow",
                          noun, id);
  default:
    return cli_fail(EX_NOINPUT, "%s %s: there is no task with this message id", noun, id);
  }
}

static int check_line(const struct args *args) {
  const char *status = args_text(args, OPT_STATUS);
  char word[SHELL_ROOM(STORE_ID_MAX)];
  if (!args_has(args, OPT_ATTEMPT) || !status)
    return cli_fail(EX_USAGE, "task result: --attempt and --status are needed; `duebox task show %s` has the attempt",
                    shell_word(word, sizeof word, args->operands[0]));
  if (strcmp(status, "done") != 0 && strcmp(status, "retry") != 0 && strcmp(status, "fail") != 0)
    return cli_fail(EX_USAGE, "--status: \"%s\" is none of done, retry, fail", status);
  if (args_has(args, OPT_RETRY_IN) && strcmp(status, "retry") != 0)
    return cli_fail(EX_USAGE, "task result: --retry-in goes with --status retry only");
  if ((args_has(args, OPT_ERROR_CLASS) || args_has(args, OPT_ERROR_MESSAGE)) && strcmp(status, "done") == 0)
    return cli_fail(EX_USAGE, "task result: --error-class and --error-message go with --status retry or fail");
  return EX_OK;
}

/* Whether the row is another than `before`: what counted has changed it. On a cluster the change may be on its way to
 * our node. */
static int see_changed(const struct operator* op, const struct task_target *before, bool *changed) {
  enum { TRIES = 20, EVERY_US = 100 * 1000 };
  char name[sizeof before->message_id + 16];
  snprintf(name, sizeof name, "message_id:%s", before->message_id);
  *changed = false;
  for (int i = 0; i < TRIES && !*changed; i++) {
    struct task_target now;
    struct err err = {0};
    bool found;
    if (i > 0)
      thread_sleep(EVERY_US);
    enum store_status status = op->ops->find_exact(op->self, name, 0, &now, &found, &err);
    if (status != STORE_OK)
      return cli_fail_store(status, &err);
    *changed = !found || now.id != before->id || now.state != before->state || now.next_us != before->next_us;
  }
  return EX_OK;
}

/* A daemon of another outbox may answer: that of the database this one is a copy of, or one with the same address. */
static int tell_seen(const struct cli *cli, const struct operator* op, const char *id, const struct task_target *before,
                     const struct daemons *daemons) {
  const char *fate = json_string_value(json_object_get(daemons->answer.body, "fate"));
  bool changed = true;
  int code = EX_OK;
  if (daemons->answer.status == HTTP_OK && fate && strcmp(fate, "applied") == 0)
    code = see_changed(op, before, &changed);
  if (code)
    return code;
  if (changed)
    return tell_answer(cli, id, &daemons->answer);
  return cli_fail(EX_UNAVAILABLE,
                  "task %s: the daemon at %s says that the result was applied, and the row is as it was: that daemon "
                  "works on another database. Each outbox needs an admin.url of its own; of a copied database empty "
                  "outbox_instances",
                  id, daemons->url);
}

/* The row does not count this attempt yet: whoever sent it from memory records that. Where nobody lives who could, it
 * was never sent, or by a daemon that died before it had recorded it. */
static int tell_early(const struct operator* op, const char *id, const struct task_target *target) {
  struct shard_owner owner;
  struct err err = {0};
  enum store_status status = op->ops->owner(op->self, target->shard, &owner, &err);
  if (status != STORE_OK)
    return cli_fail_store(status, &err);
  if (owner.alive)
    return cli_fail(EX_TEMPFAIL,
                    "task %s: this attempt is not recorded as handed out yet; if the daemon %s has it out, it does so "
                    "when its copy is confirmed. Nothing was changed; give the result again then",
                    id, owner.instance);
  return cli_fail(EX_DATAERR,
                  "task %s: this attempt is not recorded as handed out, and no daemon has the task who could do so; "
                  "nothing was changed. The next daemon sends it with this number: answer then, or cancel the task",
                  id);
}

/* Where nothing was changed here, a daemon may still do it. */
static int tell_open(const struct cli *cli, const char *id, const struct store_result *result,
                     const struct daemons *daemons, int code) {
  char word[SHELL_ROOM(STORE_ID_MAX)];
  if (code == EX_OK && result->fate != RESULT_BUSY)
    return result_tell_fate(cli, "task", id, result);
  return cli_fail(code ? code : EX_TEMPFAIL,
                  "task %s: not known yet: %s, and a daemon has this result too (that at %s) and may still apply it. "
                  "Look with `duebox task show %s` before you give another one",
                  id,
                  code            ? "the database does not take it here"
                  : result->early ? "it is not recorded yet whether this attempt was handed out"
                                  : "its row is in use",
                  daemons->url, shell_word(word, sizeof word, id));
}

static int deliver(struct cli *cli, const struct config *config, const struct operator* op, const char *id,
                   const struct task_target *target, const char *record) {
  struct daemons daemons = {.record = record};
  struct store_result result = {0};
  struct err err = {0};
  int code;
  if (!daemon_client_new(&config->admin, op, &daemons.client, &err))
    return cli_fail_err(&err);
  enum store_status status = op->ops->instances(op->self, try_instance, &daemons, &err);
  if (status != STORE_OK)
    code = cli_fail_store(status, &err);
  else if (is_definite(daemons.answer.status))
    code = tell_seen(cli, op, id, target, &daemons);
  else if ((code = result_settle_directly(config, record, &(struct record_road){0}, "duebox task result", id,
                                          &result)) != EX_DATAERR &&
           daemons.may_have)
    code = tell_open(cli, id, &result, &daemons, code);
  else if (code == EX_OK)
    code = result.fate == RESULT_BUSY && result.early ? tell_early(op, id, target)
                                                      : result_tell_fate(cli, "task", id, &result);
  json_decref(daemons.answer.body);
  daemon_client_free(&daemons.client);
  return code;
}

int run_task_result(struct cli *cli, const struct args *args) {
  const struct config *config;
  const struct operator* op;
  struct task_target target;
  struct err err = {0};
  bool found;
  const char *id = args->operands[0];
  int code = check_line(args);
  if (code)
    return code;
  char *record = make_record(args, id, &err); /* what is wrong with the line needs no database */
  if (!record)
    return cli_fail_err(&err);
  free(record);
  if ((code = cli_config(cli, &config)) || (code = cli_operator(cli, &op)))
    return code;
  enum store_status status = op->ops->find(op->self, id, 0, &target, &found, &err);
  if (status != STORE_OK)
    return cli_fail_store(status, &err);
  if (!found)
    return cli_fail(EX_NOINPUT, "task %s: not found, neither in the outbox nor in its history", id);
  record = make_record(args, target.message_id, &err);
  if (!record || !check_record(record, &err)) {
    free(record);
    return cli_fail_err(&err);
  }
  code = deliver(cli, config, op, id, &target, record);
  free(record);
  return code;
}
