/* SPDX-License-Identifier: MIT
 *
 * outbox/operator_insert.c - a task from the command line: the same INSERT that an application writes, with only those
 * columns that were given, so that the table's defaults and checks hold for people too.
 */
#include <string.h>

#include "outbox/db_error.h"
#include "outbox/operator_impl.h"

static const char what[] = "inserting the task";

struct insert {
  const struct new_task *task;
  uint64_t *id;
  char *message_id;
};

struct columns {
  struct text names, values;
};

static void add_name(struct columns *columns, const char *name) {
  const char *separator = columns->names.len ? ", " : "";
  text_puts(&columns->names, separator);
  text_puts(&columns->names, name);
  text_puts(&columns->values, separator);
}

static void add_bytes(struct columns *columns, const char *name, const char *data, size_t len) {
  add_name(columns, name);
  text_sql(&columns->values, data, len);
}

static void add_text(struct columns *columns, const char *name, const char *text) {
  if (text)
    add_bytes(columns, name, text, strlen(text));
}

static void add_number(struct columns *columns, const char *name, int64_t number) {
  if (!number)
    return;
  add_name(columns, name);
  text_i64(&columns->values, number);
}

static void add_when(struct columns *columns, const char *name, int64_t us) {
  if (!us)
    return;
  add_name(columns, name);
  text_puts(&columns->values, "'");
  text_time(&columns->values, us);
  text_puts(&columns->values, "'");
}

static void add_task(struct columns *columns, const struct new_task *task) {
  add_text(columns, "route", task->route);
  add_bytes(columns, "payload", task->payload.data, task->payload.len);
  add_text(columns, "headers", task->headers);
  add_text(columns, "task_key", task->key);
  add_text(columns, "dedup_key", task->dedup_key);
  add_text(columns, "order_key", task->order_key);
  add_text(columns, "message_id", task->message_id);
  add_text(columns, "target_host", task->target_host);
  if (task->delay_ms >= 0) {
    add_name(columns, "delay_ms");
    text_i64(&columns->values, task->delay_ms);
  }
  add_when(columns, "due_at", task->due_us);
  add_when(columns, "expires_at", task->expires_us);
  add_number(columns, "priority", task->priority);
  add_number(columns, "max_attempts", task->max_attempts);
  add_number(columns, "timeout_ms", task->timeout_ms);
}

static bool read_back(struct outbox_operator *op, const struct insert *insert, struct err *err) {
  struct db_result result;
  struct db_row row;
  if (!op_query(op, opsql_inserted, NO_ARGS, what, &result, err))
    return false;
  bool ok = db_next(&result, &row, 2) && db_u64(&row, 0, UINT64_MAX, insert->id) &&
            db_copy(&row, 1, insert->message_id, STORE_ID_MAX + 1);
  db_results_free(&result, 1);
  return ok || db_unexpected(err, what);
}

static bool insert_body(struct outbox_operator *op, void *ctx, struct err *err) {
  const struct insert *insert = ctx;
  struct columns columns = {0};
  add_task(&columns, insert->task);
  bool ok = !(columns.names.failed || columns.values.failed) ||
            err_set(err, DB_E_NO_MEMORY, "%s: %s", what, db_error_cure(DB_E_NO_MEMORY));
  ok = ok &&
       op_query(op, opsql_insert, ARGS(RAW("names", columns.names), RAW("values", columns.values)), what, NULL, err) &&
       read_back(op, insert, err);
  text_free(&columns.names);
  text_free(&columns.values);
  return ok;
}

enum store_status op_insert(void *self, const struct new_task *task, uint64_t *id, char message_id[STORE_ID_MAX + 1],
                            struct err *err) {
  struct insert insert = {.task = task, .id = id, .message_id = message_id};
  return op_transaction(self, insert_body, &insert, err);
}
