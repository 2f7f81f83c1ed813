/* SPDX-License-Identifier: MIT
 *
 * outbox/operator_base.c - what the parts of the port for people stand on: statements, transactions, rows as named
 * values, audit rows.
 */
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "outbox/db_api.h"
#include "outbox/db_error.h"
#include "outbox/operator_impl.h"
#include "outbox/server.h"
#include "query.h"

enum { TRIES = 5, LOCK_US = 4 * 1000 * 1000 /* after that a lock is not tried again; one try may take five seconds */ };

/* --- running statements --- */

enum store_status op_status(const struct err *err) { return db_class_status(db_error_class(err->code)); }

bool op_query(struct outbox_operator *op, const char *statement, const struct sql_arg *args, const char *what,
              struct db_result *result, struct err *err) {
  struct db_result ignored;
  struct text script = {0};
  text_statement(&script, statement, op->table, args);
  bool ok = db_script(op->conn, &script, what, result ? result : &ignored, 1, err);
  if (ok && !result)
    db_results_free(&ignored, 1);
  text_free(&script);
  return ok;
}

bool op_change(struct outbox_operator *op, const char *statement, const struct sql_arg *args, const char *what,
               uint64_t *changed, struct err *err) {
  struct db_result result;
  if (!op_query(op, statement, args, what, &result, err))
    return false;
  *changed = result.count;
  db_results_free(&result, 1);
  return true;
}

/* A COMMIT that fails may have happened: nothing here can tell, so it is said. */
static enum store_status commit_unknown(struct outbox_operator *op, struct err *err) {
  enum store_status status = op_status(err);
  struct err second; /* what is not rolled back would be committed by the next change */
  if (!server_roll_back(op->conn, "undoing a change", &second))
    status = STORE_DOWN;
  err_wrap(err, "the last step may or may not have been carried out; look at the tasks before you repeat it");
  return status;
}

/* Whether what has failed may go well in the next try: locks are waited for, but not by each transaction of a command.
 */
static bool may_go_on(struct outbox_operator *op, int64_t began_us, const struct err *err) {
  if (err->code != DB_LOCK_WAIT)
    return true;
  op->met_lock = op->met_lock || clock_mono_us() - began_us >= LOCK_US;
  return !op->met_lock;
}

enum store_status op_transaction(struct outbox_operator *op, op_body *body, void *ctx, struct err *err) {
  enum store_status status = STORE_BUSY;
  int64_t began_us = clock_mono_us();
  for (int i = 0; i < TRIES && status == STORE_BUSY && (i == 0 || may_go_on(op, began_us, err)); i++) {
    if (!db_run(op->conn, server_begin(op->conn), "beginning a change", err))
      return op_status(err);
    bool ready = body(op, ctx, err);
    if (ready && db_run(op->conn, server_commit(op->conn), "committing the change", err))
      return STORE_OK;
    if (ready && !server_undid_commit(op->conn, err->code))
      return commit_unknown(op, err);
    status = op_status(err);
    struct err second;
    if (!server_roll_back(op->conn, "undoing a change", &second) && status == STORE_BUSY)
      return STORE_DOWN; /* the server undoes it when it sees the connection gone; the first error stays in err */
  }
  return status;
}

/* --- rows as named values --- */

static bool ends_with_id(const char *name) {
  size_t len = strlen(name);
  return strcmp(name, "id") == 0 || (len > 3 && strcmp(name + len - 3, "_id") == 0);
}

static enum field_kind field_kind(const MYSQL_FIELD *column) {
  enum { BINARY_CHARSET = 63 };
  switch (column->type) {
  case MYSQL_TYPE_TINY:
    return column->length == 1 ? FIELD_BOOL : FIELD_INT;
  case MYSQL_TYPE_LONGLONG:
    return ends_with_id(column->name) ? FIELD_ID : FIELD_INT;
  case MYSQL_TYPE_SHORT:
  case MYSQL_TYPE_INT24:
  case MYSQL_TYPE_LONG:
    return FIELD_INT;
  case MYSQL_TYPE_FLOAT:
  case MYSQL_TYPE_DOUBLE:
    return FIELD_REAL;
  case MYSQL_TYPE_DATETIME:
    return FIELD_TIME;
  default: /* texts and blobs, which the protocol tells apart by their character set only */
    return column->charsetnr == BINARY_CHARSET ? FIELD_BYTES : FIELD_TEXT;
  }
}

static bool make_field(const MYSQL_FIELD *column, const struct db_row *row, unsigned i, struct field *out) {
  *out = (struct field){.name = column->name, .kind = field_kind(column), .null = row->fields[i] == NULL};
  if (out->null)
    return true;
  out->text = (struct duebox_bytes){row->fields[i], row->lengths[i]};
  switch (out->kind) {
  case FIELD_INT:
  case FIELD_BOOL:
    out->number = strtoll(row->fields[i], NULL, 10);
    return true;
  case FIELD_REAL:
    out->real = strtod(row->fields[i], NULL);
    return true;
  case FIELD_TIME: /* a zero date, which somebody got past the schema, is shown as it is */
    if (!db_time(row, i, &out->number))
      out->kind = FIELD_TEXT;
    return true;
  default:
    return true;
  }
}

enum { COLUMNS_MAX = 64 };

/* False where a value is not what its type says. */
static bool make_fields(const struct db_result *result, const struct db_row *row, struct field fields[COLUMNS_MAX],
                        size_t *count) {
  *count = result->columns;
  const MYSQL_FIELD *columns = mysql_fetch_fields(result->set);
  for (unsigned i = 0; i < *count; i++)
    if (*count > COLUMNS_MAX || !make_field(&columns[i], row, i, &fields[i]))
      return false;
  return true;
}

bool op_row(struct db_result *result, const struct db_row *raw, row_fn *row, void *ctx, bool *goes_on, const char *what,
            struct err *err) {
  struct field fields[COLUMNS_MAX];
  size_t count;
  if (!make_fields(result, raw, fields, &count))
    return db_unexpected(err, what);
  *goes_on = row(ctx, fields, count);
  return true;
}

bool op_rows(struct db_result *result, row_fn *row, void *ctx, const char *what, struct err *err) {
  struct db_row raw;
  bool ok = true, goes_on = true;
  while (ok && goes_on && db_next(result, &raw, DB_ANY_COLUMNS))
    ok = op_row(result, &raw, row, ctx, &goes_on, what, err);
  db_results_free(result, 1);
  return ok;
}

static bool is_skipped(const char *name, const char *const *skip) {
  while (*skip && strcmp(*skip, name) != 0)
    skip++;
  return *skip != NULL;
}

bool op_row_json(struct text *out, const struct db_result *result, const struct db_row *row, const char *const *skip) {
  struct field fields[COLUMNS_MAX];
  size_t count;
  if (!make_fields(result, row, fields, &count))
    return false;
  const char *separator = "{";
  for (size_t i = 0; i < count; i++) {
    const struct field *field = &fields[i];
    if (is_skipped(field->name, skip))
      continue;
    text_puts(out, separator);
    separator = ", ";
    text_json(out, field->name, strlen(field->name), SIZE_MAX);
    text_puts(out, ": ");
    if (field->null)
      text_puts(out, "null");
    else if (field->kind == FIELD_INT || field->kind == FIELD_BOOL)
      text_i64(out, field->number);
    else
      text_json(out, field->text.data, field->text.len, SIZE_MAX);
  }
  text_puts(out, "}");
  return true;
}

bool op_audit(struct outbox_operator *op, const char *verb, const char *actor, const char *reason, const char *filter,
              uint64_t changed, const struct text *before, uint64_t *audit_id, struct err *err) {
  struct text clean_actor = {0}, clean_reason = {0}, clean_filter = {0}, quoted = {0};
  text_clean_sql(&clean_actor, actor, strlen(actor), 64);
  text_clean_sql(&clean_reason, reason, strlen(reason), 512);
  text_clean_sql(&clean_filter, filter, strlen(filter), 60000);
  if (before)
    text_sql(&quoted, before->data, before->len);
  else
    text_puts(&quoted, "NULL");
  bool ok = !(clean_actor.failed || clean_reason.failed || clean_filter.failed || quoted.failed ||
              (before && before->failed)) ||
            err_set(err, DB_E_NO_MEMORY, "writing the audit row: %s", db_error_cure(DB_E_NO_MEMORY));
  ok = ok && op_query(op, query_audit,
                      ARGS(RAW("actor", clean_actor), STRING("verb", verb), RAW("reason", clean_reason),
                           RAW("filter", clean_filter), UNSIGNED("changed", changed), RAW("before", quoted)),
                      "writing the audit row", NULL, err);
  text_free(&clean_actor);
  text_free(&clean_reason);
  text_free(&clean_filter);
  text_free(&quoted);
  if (ok)
    *audit_id = mysql_insert_id(op->conn->mysql);
  return ok;
}
