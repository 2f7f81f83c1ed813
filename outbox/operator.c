/* SPDX-License-Identifier: MIT
 *
 * outbox/operator.c - the port for people: its connection, finding tasks and showing them.
 */
#include "outbox/operator.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "outbox/db_api.h"
#include "outbox/db_error.h"
#include "outbox/operator_impl.h"
#include "outbox/row.h"

enum { PAGE_ROWS = 1000 };

static enum store_status op_now(void *self, int64_t *now_us, struct err *err) {
  struct outbox_operator *op = self;
  struct db_result result;
  struct db_row row;
  if (!op_query(op, "SELECT UTC_TIMESTAMP(6)", NO_ARGS, "asking for the time", &result, err))
    return op_status(err);
  bool ok = db_next(&result, &row, 1) && db_time(&row, 0, now_us);
  db_results_free(&result, 1);
  if (!ok)
    db_unexpected(err, "asking for the time");
  return ok ? STORE_OK : op_status(err);
}

static bool no_memory(struct err *err, const char *what) {
  return err_set(err, DB_E_NO_MEMORY, "%s: no memory for the statement; %s", what, db_error_cure(DB_E_NO_MEMORY));
}

/* Whether a raw condition is one by itself, says the server's own parser, which runs nothing of it. One with brackets
 * that end ours, "1) OR (1", would hold beside the other filters and not with them. */
static bool is_condition(struct outbox_operator *op, const char *where, enum operator_table table, const char *what,
                         struct err *err) {
  struct text alone = {0};
  text_expand(&alone, "SELECT 1 FROM `{table}{suffix}` WHERE {where}", op->table,
              ARGS(WORD("suffix", table == TABLE_HISTORY ? "_history" : ""), WORD("where", where)));
  bool ok = alone.failed ? no_memory(err, what)
                         : op_query(op, "PREPARE raw_condition FROM {alone}", ARGS(STRING("alone", alone.data)), what,
                                    NULL, err);
  text_free(&alone);
  return ok;
}

/* The filter as a condition, to free on success. False: its raw part is none. */
static bool make_condition(struct outbox_operator *op, const struct task_filter *filter, enum operator_table table,
                           const char *what, struct text *out, struct err *err) {
  *out = (struct text){0};
  if (filter->where && !is_condition(op, filter->where, table, what, err))
    return false;
  filter_sql(out, filter, table, op->shards);
  if (!out->failed)
    return true;
  text_free(out);
  return no_memory(err, what);
}

static bool count_table(struct outbox_operator *op, const struct task_filter *filter, enum operator_table table,
                        uint64_t cap, uint64_t *count, struct err *err) {
  *count = 0;
  if (!filter_touches(filter, table) || cap == 0)
    return true;
  static const char what[] = "counting tasks";
  struct text where;
  struct db_result result;
  struct db_row row;
  if (!make_condition(op, filter, table, what, &where, err))
    return false;
  bool ok = op_query(
      op, opsql_count,
      ARGS(WORD("suffix", table == TABLE_HISTORY ? "_history" : ""), RAW("where", where), UNSIGNED("cap", cap)), what,
      &result, err);
  text_free(&where);
  if (!ok)
    return false;
  ok = db_next(&result, &row, 1) && db_u64(&row, 0, UINT64_MAX, count);
  db_results_free(&result, 1);
  return ok || db_unexpected(err, what);
}

static enum store_status op_count_tasks(void *self, const struct task_filter *filter, uint64_t cap, uint64_t *count,
                                        struct err *err) {
  uint64_t living, ended;
  cap = cap ? cap : INT64_MAX;
  if (!count_table(self, filter, TABLE_LIVING, cap, &living, err) ||
      !count_table(self, filter, TABLE_HISTORY, cap - living, &ended, err))
    return op_status(err);
  *count = living + ended;
  return STORE_OK;
}

/* --- which way to read --- */

/* Rows are wanted in the order of the primary key. Reading along it finds the next row of a common route at once and
 * reads the whole table for a rare one, so that rare ones are read by their index and sorted. */
static bool choose_hint(struct outbox_operator *op, const struct task_filter *filter, enum operator_table table,
                        const char **hint, struct err *err) {
  enum { RARE_ROWS = 20000 };
  struct task_filter part;
  const char *index = filter_index(filter, table, &part);
  uint64_t count = RARE_ROWS;
  *hint = "";
  if (index && !count_table(op, &part, table, RARE_ROWS, &count, err))
    return false;
  if (count < RARE_ROWS)
    *hint = index;
  return true;
}

/* --- lists --- */

static const char listing[] = "listing tasks";

/* Of list.sql and list_history.sql. */
enum { LIST_ID = 0, LIST_MESSAGE_ID = 1, LIST_KEEP_UNTIL = 19 };

/* One table, by falling id, read by pages. */
struct cursor {
  struct outbox_operator *op;
  enum operator_table table;
  struct text where;
  const char *hint;
  uint64_t limit; /* rows that are wanted of both tables */
  struct db_result page;
  bool has_page, last_page;
  bool at_row; /* row and id are those of the next one; otherwise there is none */
  struct db_row row;
  uint64_t id;
  int64_t keep_us; /* of history */
};

static void close_cursor(struct cursor *cursor) {
  if (cursor->has_page)
    db_results_free(&cursor->page, 1);
  cursor->has_page = false;
  text_free(&cursor->where);
}

static bool next_page(struct cursor *cursor, struct err *err) {
  uint64_t want = cursor->limit < PAGE_ROWS ? cursor->limit : PAGE_ROWS;
  if (cursor->has_page)
    db_results_free(&cursor->page, 1);
  cursor->has_page =
      op_query(cursor->op, cursor->table == TABLE_LIVING ? opsql_list : opsql_list_history,
               ARGS(RAW("where", cursor->where), WORD("hint", cursor->hint), UNSIGNED("below", cursor->id),
                    TIME("until", cursor->keep_us), UNSIGNED("limit", want)),
               listing, &cursor->page, err);
  cursor->last_page = cursor->has_page && cursor->page.count < want;
  return cursor->has_page;
}

static bool next_row(struct cursor *cursor, struct err *err) {
  cursor->at_row = cursor->has_page && db_next(&cursor->page, &cursor->row, DB_ANY_COLUMNS);
  if (!cursor->at_row && !cursor->last_page) {
    if (!next_page(cursor, err))
      return false;
    cursor->at_row = db_next(&cursor->page, &cursor->row, DB_ANY_COLUMNS);
  }
  if (!cursor->at_row)
    return true;
  bool ok = cursor->page.columns > LIST_KEEP_UNTIL && db_u64(&cursor->row, LIST_ID, UINT64_MAX, &cursor->id) &&
            cursor->row.fields[LIST_MESSAGE_ID];
  cursor->keep_us = ok && cursor->table == TABLE_HISTORY ? row_time_or_past(&cursor->row, LIST_KEEP_UNTIL) : 0;
  return ok || db_unexpected(err, listing);
}

static bool open_cursor(struct cursor *cursor, struct outbox_operator *op, const struct task_filter *filter,
                        enum operator_table table, uint64_t limit, struct err *err) {
  *cursor = (struct cursor){.op = op, .table = table, .limit = limit, .id = UINT64_MAX, .last_page = true};
  if (!filter_touches(filter, table))
    return true;
  cursor->last_page = false;
  return choose_hint(op, filter, table, &cursor->hint, err) &&
         make_condition(op, filter, table, listing, &cursor->where, err) && next_row(cursor, err);
}

/* The one whose row is the next of both. Of a task that ended between the looks at the two tables only the later row is
 * listed; of two tasks that have had the same id the living one comes first. */
static struct cursor *choose_cursor(struct cursor *living, struct cursor *ended, struct err *err) {
  if (living->at_row && ended->at_row && living->id == ended->id &&
      strcmp(living->row.fields[LIST_MESSAGE_ID], ended->row.fields[LIST_MESSAGE_ID]) == 0 && !next_row(living, err))
    return NULL;
  return living->at_row && (!ended->at_row || living->id >= ended->id) ? living : ended;
}

static bool merge_tables(struct cursor *living, struct cursor *ended, uint64_t limit, row_fn *row, void *ctx,
                         struct err *err) {
  bool goes_on = true;
  for (uint64_t rows = 0; goes_on && rows < limit; rows++) {
    struct cursor *next = choose_cursor(living, ended, err);
    if (!next)
      return false;
    if (!next->at_row)
      return true;
    if (!op_row(&next->page, &next->row, row, ctx, &goes_on, listing, err) ||
        (goes_on && rows + 1 < limit && !next_row(next, err)))
      return false;
  }
  return true;
}

static enum store_status op_list_tasks(void *self, const struct task_filter *filter, uint64_t limit, row_fn *row,
                                       void *ctx, struct err *err) {
  struct cursor living, ended = {0};
  limit = limit ? limit : UINT64_MAX;
  bool ok = open_cursor(&living, self, filter, TABLE_LIVING, limit, err) &&
            open_cursor(&ended, self, filter, TABLE_HISTORY, limit, err) &&
            merge_tables(&living, &ended, limit, row, ctx, err);
  close_cursor(&living);
  close_cursor(&ended);
  return ok ? STORE_OK : op_status(err);
}

/* --- targets of changes --- */

static bool read_target(const struct db_row *row, struct task_target *target) {
  uint64_t shard, maybe_sent, claim_lost;
  *target = (struct task_target){.outcome = CHANGE_NOT_FOUND};
  if (!db_u64(row, 0, UINT64_MAX, &target->id) || !db_copy(row, 1, target->message_id, sizeof target->message_id) ||
      !row->fields[2] || !db_u64(row, 3, UINT8_MAX, &shard) || !db_u64(row, 5, 1, &maybe_sent) ||
      !db_u64(row, 6, 1, &claim_lost))
    return false;
  target->maybe_sent = maybe_sent;
  target->claim_lost = claim_lost;
  target->next_us = row->fields[4] ? row_time_or_past(row, 4) : 0;
  target->due_us = row_time_or_past(row, 7);
  target->expires_us = row_time_or_past(row, 8);
  target->keep_us = row->fields[9] ? row_time_or_past(row, 9) : 0;
  target->shard = (uint8_t)shard;
  target->misfit = shard >= STORE_SHARDS_MAX;
  target->nameless = !row_name_fits(row->fields[10] ? row->fields[10] : "", row->lengths[10], STORE_ID_MAX);
  target->state = task_state_parse(row->fields[2]);
  return target->state != TASK_STATES;
}

/* The next behind the row last; NULL = from the first on. An id can stand in the history many times. */
static enum store_status read_targets(struct outbox_operator *op, const struct task_filter *filter,
                                      enum operator_table table, enum target_order order,
                                      const struct task_target *last, struct task_target *targets, size_t cap,
                                      size_t *count, struct err *err) {
  static const char what[] = "looking for tasks to change";
  *count = 0;
  if (!filter_touches(filter, table))
    return STORE_OK;
  struct text where;
  const char *hint;
  if (!choose_hint(op, filter, table, &hint, err) || !make_condition(op, filter, table, what, &where, err))
    return op_status(err);
  struct db_result result;
  bool ok = op_query(op, table == TABLE_LIVING ? opsql_targets : opsql_targets_history,
                     ARGS(RAW("where", where), WORD("hint", hint), UNSIGNED("last", last ? last->id : 0),
                          TIME("last_until", last ? last->keep_us : 0),
                          WORD("beyond", !last                   ? ">="
                                         : order == OLDEST_FIRST ? ">"
                                                                 : "<"), /* a row may have the id 0 */
                          WORD("order", order == OLDEST_FIRST ? "ASC" : "DESC"), UNSIGNED("limit", cap)),
                     what, &result, err);
  text_free(&where);
  if (!ok)
    return op_status(err);
  struct db_row row;
  while (ok && *count < cap && db_next(&result, &row, 11))
    ok = read_target(&row, &targets[(*count)++]) || db_unexpected(err, what);
  db_results_free(&result, 1);
  return ok ? STORE_OK : op_status(err);
}

static enum store_status op_targets_of(void *self, const struct task_filter *filter, bool living,
                                       enum target_order order, const struct task_target *last,
                                       struct task_target *targets, size_t cap, size_t *count, struct err *err) {
  return read_targets(self, filter, living ? TABLE_LIVING : TABLE_HISTORY, order, last, targets, cap, count, err);
}

static bool same_task(const struct task_target *a, const struct task_target *b) {
  return a->id == b->id && strcmp(a->message_id, b->message_id) == 0;
}

enum { TWINS = 16 };

/* The first of these, or the first dead one with the same two ids: one that only ended there hides none that may be
 * retried. */
static const struct task_target *meant(const struct task_target *ended, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (ended[i].state == TASK_DEAD && same_task(&ended[i], ended))
      return &ended[i];
  return ended;
}

/* The newest row that an id names: a living one, else one of the history. An application may use a message id again
 * when its task has ended. */
static enum store_status op_find_exact(void *self, const char *id, uint32_t states, struct task_target *target,
                                       bool *found, struct err *err) {
  struct outbox_operator *op = self;
  struct task_filter filter = {.ids = &id, .id_count = 1, .exact_ids = true, .states = states};
  struct task_target ended[TWINS];
  size_t count = 0;
  enum store_status status = read_targets(op, &filter, TABLE_LIVING, NEWEST_FIRST, NULL, target, 1, &count, err);
  *found = status == STORE_OK && count > 0;
  if (status != STORE_OK || *found)
    return status;
  status = read_targets(op, &filter, TABLE_HISTORY, NEWEST_FIRST, NULL, ended, TWINS, &count, err);
  *found = status == STORE_OK && count > 0;
  if (*found)
    *target = *meant(ended, count);
  return status;
}

static bool op_names(const char *text, uint64_t id, const char *message_id) {
  struct task_name name = task_name_of(text);
  return (name.is_row && name.row == id) || task_name_is(name.message_id, message_id) ||
         task_name_is(name.whole, message_id);
}

enum { EXACT_CAP = sizeof "message_id:" + STORE_ID_MAX + STORE_WIDER };

/* A way to name the task that is not the text. */
static void put_other_name(const char *text, const struct task_target *target, char out[EXACT_CAP]) {
  if (strncmp(text, "id:", 3) != 0)
    snprintf(out, EXACT_CAP, "id:%llu", (unsigned long long)target->id);
  else if (target->nameless)
    snprintf(out, EXACT_CAP, "--where 'id = %llu'", (unsigned long long)target->id);
  else
    snprintf(out, EXACT_CAP, "message_id:%s", target->message_id);
}

/* one: what the text means by its prefix, or as digits the row; NULL = there is none. called: the task that has it for
 * a message id. */
static enum store_status refuse_ambiguous(const char *text, const struct task_target *one,
                                          const struct task_target *called, struct err *err) {
  char name[EXACT_CAP];
  unsigned long long row = called->id;
  const char *state = task_state_text(called->state);
  if (one) {
    put_other_name(text, one, name);
    err_set(err, OPERATOR_E_AMBIGUOUS,
            "%s names two tasks: row %llu (message id %s, %s) and the task with the message id %s (row %llu, %s); say "
            "%s or message_id:%s",
            text, (unsigned long long)one->id, one->message_id, task_state_text(one->state), text, row, state, name,
            text);
  } else {
    err_set(err, OPERATOR_E_AMBIGUOUS,
            "%s names no task by its prefix, and the task with the message id %s (row %llu, %s) without one; say "
            "message_id:%s for that",
            text, text, row, state, text);
  }
  return STORE_REFUSED;
}

/* Digits name a row, or carry somebody's message id. Where they do both, of two tasks, nobody guesses which is meant.
 * What has a prefix says which it is: a task that is called so itself is never meant, but was copied from a list,
 * perhaps. */
static enum store_status op_find(void *self, const char *id, uint32_t states, struct task_target *target, bool *found,
                                 struct err *err) {
  struct task_name name = task_name_of(id);
  struct task_target other;
  char exact[EXACT_CAP];
  bool is_called = false;
  bool digits = name.is_row && *name.message_id;
  snprintf(exact, sizeof exact, digits ? "id:%s" : "%s", id);
  enum store_status status = op_find_exact(self, digits ? exact : id, states, target, found, err);
  if (status != STORE_OK || !(digits || *name.whole))
    return status;
  snprintf(exact, sizeof exact, "message_id:%s", id);
  status = op_find_exact(self, exact, states, &other, &is_called, err);
  if (status != STORE_OK || !is_called)
    return status;
  if (*found ? !same_task(target, &other) : !digits)
    return refuse_ambiguous(id, *found ? target : NULL, &other, err);
  *target = other;
  *found = true;
  return STORE_OK;
}

/* --- one task --- */

static bool show_row(struct outbox_operator *op, const struct task_target *target, uint64_t payload_cap,
                     const struct task_detail_fns *fns, bool *shown, struct err *err) {
  struct db_result result;
  if (!op_query(op, task_state_living(target->state) ? opsql_show : opsql_show_history,
                ARGS(UNSIGNED("id", target->id), TIME("keep_until", target->keep_us), UNSIGNED("cap", payload_cap)),
                "showing a task", &result, err))
    return false;
  *shown = result.count > 0;
  return op_rows(&result, fns->task, fns->ctx, "showing a task", err);
}

static bool show_attempts(struct outbox_operator *op, const struct task_target *target,
                          const struct task_detail_fns *fns, struct err *err) {
  struct db_result result;
  return op_query(op, opsql_attempts, ARGS(STRING("message_id", target->message_id)), "listing attempts", &result,
                  err) &&
         op_rows(&result, fns->attempt, fns->ctx, "listing attempts", err);
}

/* A row that ends between the two looks has moved to the other table: then it is looked for again. */
static enum store_status op_show_task(void *self, const char *id, uint64_t payload_cap,
                                      const struct task_detail_fns *fns, bool *found, struct err *err) {
  enum { LOOKS = 3 };
  struct task_target target;
  bool shown = false;
  *found = true;
  for (int i = 0; i < LOOKS && *found && !shown; i++) {
    enum store_status status = op_find(self, id, 0, &target, found, err);
    if (status != STORE_OK || (*found && !show_row(self, &target, payload_cap, fns, &shown, err)))
      return status != STORE_OK ? status : op_status(err);
  }
  *found = shown;
  return !shown || show_attempts(self, &target, fns, err) ? STORE_OK : op_status(err);
}

/* --- the port --- */

static void op_close(void *self) {
  struct outbox_operator *op = self;
  db_close(&op->conn);
  free(op);
}

static const struct operator_ops ops = {
    .close = op_close,
    .now = op_now,
    .count = op_count_tasks,
    .list = op_list_tasks,
    .show = op_show_task,
    .find = op_find,
    .find_exact = op_find_exact,
    .targets = op_targets_of,
    .names = op_names,
    .judge = op_judge,
    .change = op_change_tasks,
    .audit = op_audit_change,
    .owner = op_shard_owner,
    .insert = op_insert,
    .routes = op_routes,
    .pause = op_pause,
    .instances = op_list_instances,
    .announce = op_announce,
    .announced = op_announced,
    .withdraw = op_withdraw,
    .quarantine = op_quarantine,
    .quarantine_forget = op_quarantine_forget,
    .doctor = op_doctor,
};

/* The connection takes one statement at a time from here on: a raw condition must not bring a second one with it. */
static bool prepare(struct outbox_operator *op, struct err *err) {
  op->shards = (shard_bit((uint8_t)op->conn->shards) - 1) | shard_bit(SHARD_BOUND);
  if (mysql_set_server_option(op->conn->mysql, MYSQL_OPTION_MULTI_STATEMENTS_OFF) == 0)
    return true;
  int code = (int)mysql_errno(op->conn->mysql);
  return db_failed(op->conn->mysql, op->conn->config, "opening the database", code, "", err);
}

enum store_status outbox_operator_open(const struct database_config *config, struct operator* out, struct err *err) {
  struct outbox_operator *op = calloc(1, sizeof *op);
  if (!op) {
    err_set(err, DB_E_NO_MEMORY, "opening the database: %s", db_error_cure(DB_E_NO_MEMORY));
    return STORE_DOWN;
  }
  op->table = config->table;
  if (!db_open(config, DB_OPERATOR, "operator", &op->conn, err) || !prepare(op, err)) {
    op_close(op);
    return op_status(err);
  }
  *out = (struct operator){.ops = &ops, .self = op};
  return STORE_OK;
}
