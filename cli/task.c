/* SPDX-License-Identifier: MIT
 *
 * cli/task.c - `duebox task list`, `task show` and `task add`. What changes tasks is in task_change.c.
 */
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/file.h"
#include "cli/rows.h"
#include "cli/select.h"
#include "cli/task.h"
#include "cli/times.h"
#include "core/headers.h"

enum { LIST_LIMIT = 100, PAYLOAD_SHOWN = 2048 };

/* --- list --- */

struct task_list {
  const struct operator* op;
  struct listing *listing;
  const struct task_filter *filter;
  size_t limit; /* 0 = none */
  bool cut;     /* there are more than that */
  bool *found;  /* by place in filter->ids: there is such a task */
};

/* Which of the ids that were given name this row. */
static void note_found(struct task_list *list, const struct field *fields, size_t count) {
  char id[32] = "", message_id[STORE_ID_MAX + STORE_WIDER + 1] = "";
  for (size_t i = 0; i < count; i++) {
    char *to = strcmp(fields[i].name, "id") == 0 ? id : strcmp(fields[i].name, "message_id") == 0 ? message_id : NULL;
    if (to)
      snprintf(to, to == id ? sizeof id : sizeof message_id, "%.*s", (int)fields[i].text.len, fields[i].text.data);
  }
  for (size_t i = 0; i < list->filter->id_count; i++)
    list->found[i] = list->found[i] || list->op->ops->names(list->filter->ids[i], strtoull(id, NULL, 10), message_id);
}

static bool list_row(void *ctx, const struct field *fields, size_t count) {
  struct task_list *list = ctx;
  note_found(list, fields, count);
  list->cut = list->limit && listing_rows(list->listing) >= list->limit;
  if (list->cut)
    return list->filter->id_count > 0; /* which of the others there are is to be said */
  return listing_add(list->listing, row_json(fields, count, true)) && !output_unwanted();
}

/* An id that names no task is told of, as by `task show`. Exit code. */
static int tell_missing(const struct task_list *list, bool only_dead) {
  int code = EX_OK;
  for (size_t i = 0; i < list->filter->id_count; i++)
    if (!list->found[i])
      code = cli_fail(EX_NOINPUT,
                      only_dead ? "task %s: not found among the dead ones"
                                : "task %s: not found, neither in the outbox nor in its history",
                      list->filter->ids[i]);
  return code;
}

int task_listing(struct cli *cli, const struct args *args, uint32_t states, const struct column *columns,
                 size_t column_count) {
  const struct operator* op;
  struct selection selection;
  struct err err = {0};
  int64_t limit = LIST_LIMIT;
  if (!select_read(args, true, &selection, &err) || !args_int(args, OPT_LIMIT, 0, INT64_MAX, &limit, &err))
    return cli_fail_err(&err);
  if (selection.by_ids && !args_has(args, OPT_LIMIT))
    limit = 0; /* whoever names tasks means all of them */
  int code = select_open(cli, &selection, &op);
  if (code)
    return code;
  if (states)
    selection.filter.states = states;
  struct task_list list = {.op = op,
                           .filter = &selection.filter,
                           .limit = (size_t)limit,
                           .found = calloc(selection.filter.id_count + 1, sizeof(bool))};
  list.listing = list.found ? listing_open(&cli->output, columns, column_count) : NULL;
  if (!list.listing) {
    free(list.found);
    return cli_fail(EX_OSERR, "out of memory");
  }
  uint64_t wanted = limit && !selection.by_ids ? (uint64_t)limit + 1 : 0; /* one more tells whether that is all */
  enum store_status status = op->ops->list(op->self, &selection.filter, wanted, list_row, &list, &err);
  listing_close(list.listing, status == STORE_OK && !selection.by_ids ? "no such task" : NULL);
  if (status != STORE_OK)
    code = select_fail(status, &selection, &err);
  else if (!output_unwanted())
    code = tell_missing(&list, states == STATE_BIT(TASK_DEAD));
  if (status == STORE_OK && list.cut && cli->output.format == OUTPUT_TEXT)
    cli_remark(cli, "the newest %lld are shown; --limit 0 shows all", (long long)limit);
  free(list.found);
  return code;
}

int run_task_list(struct cli *cli, const struct args *args) {
  static const struct column columns[] = {
      {"id", "ID", CELL_NUMBER, false},           {"state", "STATE", CELL_STATE, false},
      {"route", "ROUTE", CELL_TEXT, false},       {"due_at", "DUE", CELL_TIME, false},
      {"attempt", "TRIED", CELL_NUMBER, false},   {"priority", "PRIO", CELL_NUMBER, false},
      {"task_key", "KEY", CELL_TEXT, true},       {"error_class", "ERROR", CELL_TEXT, true},
      {"message_id", "MESSAGE", CELL_NAME, true},
  };
  return task_listing(cli, args, 0, columns, ARRAY_LEN(columns));
}

/* --- show --- */

static const struct column show_columns[] = {
    {"id", "id", CELL_TEXT, false},
    {"message_id", "message id", CELL_NAME, false},
    {"state", "state", CELL_STATE, false},
    {"route", "route", CELL_TEXT, false},
    {"task_key", "key", CELL_TEXT, false},
    {"priority", "priority", CELL_TEXT, false},
    {"created_at", "inserted", CELL_TIME, false},
    {"due_at", "due", CELL_TIME, false},
    {"first_due_at", "first due", CELL_TIME, false},
    {"published_at", "published", CELL_TIME, false},
    {"finished_at", "finished", CELL_TIME, false},
    {"lateness", "lateness", CELL_TEXT, false},
    {"expires_at", "expires", CELL_TIME, false},
    {"keep_until", "kept until", CELL_TIME, false},
    {"attempt", "attempts", CELL_TEXT, false},
    {"failures", "failures", CELL_TEXT, false},
    {"recoveries", "recoveries", CELL_TEXT, false},
    {"max_attempts", "max attempts", CELL_TEXT, false},
    {"timeout_ms", "timeout ms", CELL_TEXT, false},
    {"claimed_by", "claimed by", CELL_TEXT, false},
    {"lease_until", "lease until", CELL_TIME, false},
    {"shard", "shard", CELL_TEXT, false},
    {"order_key", "order key", CELL_TEXT, false},
    {"dedup_key", "dedup key", CELL_TEXT, false},
    {"target_host", "target host", CELL_TEXT, false},
    {"move_to_host", "move to host", CELL_TEXT, false},
    {"move_to_shard", "move to shard", CELL_TEXT, false},
    {"error_class", "error class", CELL_TEXT, false},
    {"last_error", "last error", CELL_LINES, false},
    {"progress", "progress", CELL_TEXT, false},
    {"checkpoint", "checkpoint", CELL_LINES, false},
    {"result", "result", CELL_LINES, false},
    {"headers", "headers", CELL_TEXT, false},
    {"payload_length", "payload bytes", CELL_TEXT, false},
    {"payload", "payload", CELL_LINES, false},
};

static const struct column attempt_columns[] = {
    {"attempt", "ATTEMPT", CELL_NUMBER, false},    {"outcome", "OUTCOME", CELL_STATE, false},
    {"due_at", "DUE", CELL_TIME, false},           {"published_at", "PUBLISHED", CELL_TIME, false},
    {"finished_at", "FINISHED", CELL_TIME, false}, {"claimed_by", "BY", CELL_TEXT, true},
    {"error_class", "ERROR", CELL_TEXT, true},     {"error", "MESSAGE", CELL_TEXT, true},
};

struct shown_task {
  struct cli *cli;
  json_t *task, *attempts;
  bool failed; /* out of memory */
};

static bool show_task(void *ctx, const struct field *fields, size_t count) {
  struct shown_task *shown = ctx;
  shown->task = row_json(fields, count, shown->cli->output.format == OUTPUT_TEXT);
  return shown->task != NULL;
}

static bool show_attempt(void *ctx, const struct field *fields, size_t count) {
  struct shown_task *shown = ctx;
  shown->failed |= json_array_append_new(shown->attempts, row_json(fields, count, true)) != 0;
  return !shown->failed;
}

/* How late it was published, against the time that was first asked for. */
static void add_lateness(json_t *task, enum output_format format) {
  int64_t published = row_time(task, "published_at"), asked = row_time(task, "first_due_at");
  if (!asked)
    asked = row_time(task, "due_at");
  if (!published || published < asked)
    return;
  char text[32];
  if (format == OUTPUT_TEXT)
    json_object_set_new(task, "lateness", json_string(span_print(published - asked, text, sizeof text)));
  else
    json_object_set_new(task, "lateness_ms", json_real((double)(published - asked) / 1000));
}

static void print_task(struct shown_task *shown) {
  const struct output *output = &shown->cli->output;
  add_lateness(shown->task, output->format);
  if (output->format != OUTPUT_TEXT) {
    json_object_set(shown->task, "attempts", shown->attempts);
    output_json(output, shown->task);
    return;
  }
  size_t whole = (size_t)json_integer_value(json_object_get(shown->task, "payload_length"));
  const char *headers = json_string_value(json_object_get(shown->task, "headers"));
  if (headers && strcmp(headers, "{}") == 0) /* the column's default is no news */
    json_object_del(shown->task, "headers");
  output_record(output, show_columns, ARRAY_LEN(show_columns), json_incref(shown->task));
  if (json_array_size(shown->attempts) > 0) {
    puts("");
    struct listing *listing = listing_open(output, attempt_columns, ARRAY_LEN(attempt_columns));
    size_t i;
    json_t *attempt;
    json_array_foreach(shown->attempts, i, attempt) {
      if (!listing || !listing_add(listing, json_incref(attempt)))
        shown->failed = true;
    }
    listing_close(listing, NULL);
  }
  if (whole > PAYLOAD_SHOWN && !shown->cli->output.quiet)
    cli_remark(shown->cli, "of %zu bytes of payload at most %d are shown; --full shows all", whole, PAYLOAD_SHOWN);
}

int run_task_show(struct cli *cli, const struct args *args) {
  const struct operator* op;
  struct err err = {0};
  int code = cli_operator(cli, &op);
  if (code)
    return code;
  struct shown_task shown = {.cli = cli, .attempts = json_array()};
  struct task_detail_fns fns = {.ctx = &shown, .task = show_task, .attempt = show_attempt};
  bool found = false;
  uint64_t cap = args_has(args, OPT_FULL) || cli->output.format != OUTPUT_TEXT ? UINT32_MAX : PAYLOAD_SHOWN;
  enum store_status status = op->ops->show(op->self, args->operands[0], cap, &fns, &found, &err);
  if (status != STORE_OK)
    code = cli_fail_store(status, &err);
  else if (!found)
    code = cli_fail(EX_NOINPUT, "task %s: not found, neither in the outbox nor in its history", args->operands[0]);
  else if (shown.task)
    print_task(&shown);
  if (status == STORE_OK && found && (!shown.task || shown.failed))
    code = cli_fail(EX_OSERR, "out of memory");
  json_decref(shown.task);
  json_decref(shown.attempts);
  return code;
}

/* --- add --- */

/* What a daemon would leave out, or bury the task for, is refused while somebody can still mend it. */
static bool add_header(json_t *object, const char *name, const char *value, struct err *err) {
  if (headers_is_reserved(name))
    return err_set(err, EX_USAGE,
                   "--header: %s: names that begin with duebox- are duebox's own, and an application's are left out",
                   name);
  if (json_object_get(object, name))
    return err_set(err, EX_USAGE, "--header: %s is given twice", name);
  return json_object_set_new(object, name, json_string(value)) == 0 ||
         err_set(err, EX_DATAERR, "--header: \"%s=%s\" is not UTF-8", name, value);
}

static bool check_headers(const char *text, struct err *err) {
  struct duebox_header *list;
  size_t count;
  if (!text)
    return true;
  bool ok = headers_parse((struct duebox_bytes){text, strlen(text)}, &list, &count, err);
  free(list);
  if (!ok) {
    err_wrap(err, "--header");
    err->code = EX_DATAERR;
  }
  return ok;
}

/* The repeated --header NAME=VALUE as JSON text, to free(); "" in *text when there is none. */
static bool read_headers(const struct args *args, char **text, struct err *err) {
  json_t *object = json_object();
  bool ok = object != NULL;
  for (size_t i = 0; ok && i < args->given_count; i++) {
    if (args->given[i].id != OPT_HEADER)
      continue;
    const char *value = args->given[i].value, *equals = strchr(value, '=');
    char *name = equals && equals > value ? strndup(value, (size_t)(equals - value)) : NULL;
    ok = name ? add_header(object, name, equals + 1, err)
              : err_set(err, EX_USAGE, "--header: \"%s\" is not NAME=VALUE", value);
    free(name);
  }
  *text = ok && json_object_size(object) ? json_dumps(object, JSON_COMPACT) : NULL;
  json_decref(object);
  if (ok && check_headers(*text, err))
    return true;
  free(*text);
  *text = NULL;
  return false;
}

/* From --payload, --payload-file or standard input, to free(). */
static bool read_payload(const struct cli *cli, const struct args *args, int64_t max, char **data, size_t *len,
                         struct err *err) {
  const char *text = args_text(args, OPT_PAYLOAD), *file = args_text(args, OPT_PAYLOAD_FILE);
  if (!text && !file && isatty(STDIN_FILENO))
    cli_remark(cli, "type the payload and end it with Ctrl-D; --payload and --payload-file are other ways");
  if (!text)
    return file_read(file ? file : "-", max, data, len, err);
  *len = strlen(text);
  if ((int64_t)*len > max)
    return err_set(err, EX_DATAERR, "--payload: it is over engine.max_payload (%lld bytes)", (long long)max);
  *data = strdup(text);
  return *data || err_set(err, EX_OSERR, "out of memory");
}

bool task_timeout(const struct args *args, int64_t *ms, struct err *err) {
  return args_duration(args, OPT_TIMEOUT, ms, err) &&
         (*ms <= UINT32_MAX || err_set(err, EX_USAGE, "--timeout: at most 49d"));
}

/* Times as they were typed. */
struct add_times {
  struct when at, expires;
};

static const char never_sent[] = "task add: --expires-at must be later than the task is due, or it would never be sent";

/* A task that expires before it is due is never sent: the two contradict each other. Here as far as no clock is needed
 * to tell. */
static bool check_line(const struct new_task *task, const struct add_times *times, struct err *err) {
  const struct when delay = {.relative = true, .us = task->delay_ms > 0 ? task->delay_ms * 1000 : 0};
  const struct when *due = times->at.given ? &times->at : &delay, *expires = &times->expires;
  bool comparable = expires->given && expires->relative == due->relative;
  return !comparable || expires->us > due->us || err_set(err, EX_USAGE, "%s", never_sent);
}

static int check_expiry(struct cli *cli, const struct add_times *times, const struct new_task *task) {
  const struct when delay = {.given = true, .relative = true, .us = task->delay_ms > 0 ? task->delay_ms * 1000 : 0};
  int64_t due_us = task->due_us;
  int code = !times->expires.given || times->at.given ? EX_OK : cli_when(cli, &delay, &due_us);
  if (code == EX_OK && times->expires.given && task->expires_us <= due_us)
    return cli_fail(EX_USAGE, "%s", never_sent);
  return code;
}

static int find_times(struct cli *cli, const struct add_times *times, struct new_task *task) {
  int code = cli_task_time(cli, &times->at, "task add: a due time", &task->due_us);
  if (code == EX_OK)
    code = cli_task_time(cli, &times->expires, "task add: expires_at", &task->expires_us);
  return code ? code : check_expiry(cli, times, task);
}

/* What the line says; needs neither the configuration nor the database. */
static bool read_task(const struct args *args, struct new_task *task, struct add_times *times, struct err *err) {
  task->route = args->operands[0];
  task->key = args_text(args, OPT_KEY);
  task->dedup_key = args_text(args, OPT_DEDUP_KEY);
  task->order_key = args_text(args, OPT_ORDER_KEY);
  task->message_id = args_text(args, OPT_MESSAGE_ID);
  task->target_host = args_text(args, OPT_TARGET_HOST);
  task->delay_ms = -1;
  return args_int(args, OPT_PRIORITY, 1, 9, &task->priority, err) &&
         args_int(args, OPT_MAX_ATTEMPTS, 0, UINT32_MAX, &task->max_attempts, err) &&
         task_timeout(args, &task->timeout_ms, err) && args_duration(args, OPT_DELAY, &task->delay_ms, err) &&
         args_when(args, OPT_AT, &times->at, err) && args_when(args, OPT_EXPIRES_AT, &times->expires, err) &&
         check_line(task, times, err);
}

/* Refusals of the table that are the caller's data, by the server's error number. */
static int insert_failed(enum store_status status, const struct err *err) {
  static const struct {
    int number;
    const char *text;
  } known[] = {
      {1062, "a living task has this dedup key or message id already"},
      {1406, "a value is too long for its column"},
      {1292, "a time is out of range"},
      {1264, "a number is out of range"},
      {4025, "the table refuses a value"}, /* CHECK: MariaDB */
      {3819, "the table refuses a value"}, /* CHECK: MySQL */
      {1366, "a text is not valid UTF-8 or holds characters that its column does not take"},
  };
  for (size_t i = 0; status == STORE_REFUSED && i < ARRAY_LEN(known); i++)
    if (err->code == known[i].number)
      return cli_fail(EX_DATAERR, "task add: %s: %s", known[i].text, cli_store_text(err));
  return cli_fail_store(status, err);
}

static void print_added(const struct cli *cli, uint64_t id, const char *message_id) {
  static const struct column columns[] = {{"id", "id", CELL_TEXT, false},
                                          {"message_id", "message id", CELL_NAME, false}};
  output_record(&cli->output, columns, ARRAY_LEN(columns),
                json_pack("{s:o, s:s}", "id", json_sprintf("%llu", (unsigned long long)id), "message_id", message_id));
}

static int insert(struct cli *cli, const struct new_task *task) {
  const struct operator* op;
  struct err err = {0};
  uint64_t id;
  char message_id[STORE_ID_MAX + 1];
  int code = cli_operator(cli, &op);
  if (code)
    return code;
  enum store_status status = op->ops->insert(op->self, task, &id, message_id, &err);
  if (status != STORE_OK)
    return insert_failed(status, &err);
  print_added(cli, id, message_id);
  return EX_OK;
}

int run_task_add(struct cli *cli, const struct args *args) {
  const struct config *config;
  struct new_task task = {0};
  struct err err = {0};
  char *payload = NULL, *headers = NULL;
  struct add_times times = {0};
  size_t payload_len = 0;
  if (!read_task(args, &task, &times, &err) || !read_headers(args, &headers, &err))
    return cli_fail_err(&err);
  int code = cli_config(cli, &config);
  if (code)
    goto out;
  if (!read_payload(cli, args, config->engine.max_payload, &payload, &payload_len, &err)) {
    code = cli_fail_err(&err);
    goto out;
  }
  task.headers = headers;
  task.payload = (struct duebox_bytes){payload, payload_len};
  if ((code = find_times(cli, &times, &task)))
    goto out;
  code = insert(cli, &task);
  if (code == EX_OK && !config_route(config, task.route, strlen(task.route)))
    cli_remark(cli, "route %s is not in %s: the task is held until a daemon's configuration has it", task.route,
               cli->config_path);
out:
  free(payload);
  free(headers);
  return code;
}
