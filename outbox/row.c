/* SPDX-License-Identifier: MIT */
#include "outbox/row.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "outbox/db_error.h"
#include "outbox/db_rows.h"

enum { ATTEMPT_MAX = 2000000000 }; /* as the schema says: there are higher numbers to count on to */
enum { VERSION_MAX = 31, KEY_MAX = 255, HOST_MAX = 64 };

static const char *const expressions[ROW_FIELD_COUNT] = {
#define ROW(symbol, expression) [ROW_##symbol] = (expression),
    ROW_FIELDS(ROW)
#undef ROW
};

void row_columns(struct text *out, struct store_limit limit) {
  struct text fits = {0};
  text_expand(&fits,
              "OCTET_LENGTH(payload) <= {payload} AND OCTET_LENGTH(payload) + OCTET_LENGTH(headers){more} <= {bytes}",
              "",
              ARGS(SIGNED("payload", limit.payload), SIGNED("bytes", limit.bytes),
                   WORD("more", limit.content ? "" : " + COALESCE(OCTET_LENGTH(checkpoint), 0)")));
  text_clear(out);
  for (int i = 0; i < ROW_FIELD_COUNT; i++) {
    if (i)
      text_puts(out, ", ");
    text_expand(out, expressions[i], "",
                ARGS(RAW("fits", fits), WORD("checkpoint", limit.content ? "NULL" : "checkpoint")));
  }
  out->failed = out->failed || fits.failed;
  text_free(&fits);
}

void row_times(struct text *out, const char *next) {
  text_puts(out, "SELECT ");
  for (int i = 0; i < ROW_FIELD_COUNT; i++) {
    text_puts(out, i ? ", " : "");
    text_puts(out, i == ROW_DUE ? next : i == ROW_FIRST_DUE ? "UTC_TIMESTAMP(6)" : "NULL");
  }
}

bool row_decode_times(const struct db_row *row, int64_t *next_us, int64_t *now_us) {
  *next_us = INT64_MAX;
  if (row->fields[ROW_DUE])
    *next_us = row_time_or_past(row, ROW_DUE);
  return db_time(row, ROW_FIRST_DUE, now_us);
}

int64_t row_time_or_past(const struct db_row *row, unsigned field) {
  int64_t us = 0;
  return db_time(row, field, &us) ? us : 0;
}

/* The row being decoded, and the field where that failed. */
struct decoding {
  const struct db_row *row;
  const char *bad; /* NULL = none */
};

/* For people, who read of it in last_error: what is asked for in its place may be a long expression. */
static const char *column_of(enum row_field field) {
  static const char *const columns[ROW_FIELD_COUNT] = {[ROW_DUE] = "due_at",
                                                       [ROW_ROUTE] = "route",
                                                       [ROW_MESSAGE_ID] = "message_id",
                                                       [ROW_TARGET_HOST] = "target_host",
                                                       [ROW_CHANGED] = "changed_at",
                                                       [ROW_BESIDE_LEN] = "headers"};
  return columns[field] ? columns[field] : expressions[field];
}

static uint64_t number(struct decoding *d, enum row_field field, uint64_t max) {
  uint64_t value = 0;
  if (!db_u64(d->row, field, max, &value) && !d->bad)
    d->bad = column_of(field);
  return value;
}

/* NULL is 0 where the schema allows it. */
static uint64_t number_or_null(struct decoding *d, enum row_field field, uint64_t max) {
  return d->row->fields[field] ? number(d, field, max) : 0;
}

static int64_t time_of(struct decoding *d, enum row_field field, bool may_be_null) {
  int64_t us = 0;
  if (may_be_null && !d->row->fields[field])
    return 0;
  if ((!db_time(d->row, field, &us) || us < 0) && !d->bad)
    d->bad = column_of(field);
  return us;
}

static struct duebox_bytes or_empty(const struct db_row *row, enum row_field field) {
  const char *data = row->fields[field];
  return (struct duebox_bytes){.data = data ? data : "", .len = data ? row->lengths[field] : 0};
}

static struct duebox_bytes bytes(struct decoding *d, enum row_field field, size_t max) {
  struct duebox_bytes value = or_empty(d->row, field);
  if ((!d->row->fields[field] || value.len > max) && !d->bad)
    d->bad = column_of(field);
  return value;
}

static void refuse_if(struct decoding *d, bool refused, enum row_field field) {
  if (refused && !d->bad)
    d->bad = column_of(field);
}

bool row_name_fits(const char *name, size_t len, size_t max) {
  const uint64_t low = UINT64_C(0x0101010101010101), high = low * 0x80;
  bool fits = len > 0 && len <= max;
  size_t i = 0;
  for (; fits && i + sizeof(uint64_t) <= len; i += sizeof(uint64_t)) { /* eight at a time: between '!' and '~' */
    uint64_t word;
    memcpy(&word, name + i, sizeof word);
    fits = !(((word - low * '!') | (word + low * (0x7f - '~')) | word) & high);
  }
  for (; fits && i < len; i++)
    fits = name[i] >= '!' && name[i] <= '~';
  return fits;
}

bool row_route(const struct db_row *row, unsigned field, char out[ROW_ROUTE_CAP], size_t *len) {
  *len = row->fields[field] ? row->lengths[field] : 0;
  if (!db_copy(row, field, out, ROW_ROUTE_CAP))
    return false;
  while (*len > 0 && out[*len - 1] == ' ')
    out[--*len] = '\0';
  return true;
}

bool row_route_shown(const struct db_row *row, unsigned field, char out[ROW_ROUTE_CAP]) {
  size_t len;
  if (!row_route(row, field, out, &len))
    return false;
  for (char *nul = out; (nul = memchr(nul, '\0', len - (size_t)(nul - out))) != NULL;)
    *nul = '?';
  if (len == 0)
    snprintf(out, ROW_ROUTE_CAP, "(empty)");
  return true;
}

static bool is_longer(const struct duebox_bytes *text, size_t max) {
  size_t characters = 0;
  if (text->len <= max)
    return false;
  for (size_t i = 0; i < text->len; i++)
    characters += ((unsigned char)text->data[i] & 0xc0) != 0x80;
  return characters > max;
}

/* What a row is known by, and what guards its end. */
static void decode_identity(struct decoding *d, struct task *task) {
  task->id = number(d, ROW_ID, UINT64_MAX);
  task->shard = (uint8_t)number(d, ROW_SHARD, STORE_SHARDS_MAX - 1);
  /* An ENUM counts from 1; its order is that of task_state.def. */
  uint64_t state = number(d, ROW_STATE, TASK_STATES);
  if (state == 0 && !d->bad)
    d->bad = expressions[ROW_STATE];
  task->state = (enum task_state)(state ? state - 1 : 0);
  task->message_id = bytes(d, ROW_MESSAGE_ID, STORE_ID_MAX + STORE_WIDER);
}

/* The route comes first: of a row with several faults it is named, and names nothing (core/reader_sweep.c). */
static void decode_place(struct decoding *d, struct task *task) {
  task->route = bytes(d, ROW_ROUTE, STORE_ROUTE_MAX + STORE_WIDER);
  refuse_if(d, !row_name_fits(task->route.data, task->route.len, STORE_ROUTE_MAX), ROW_ROUTE);
  refuse_if(d, !row_name_fits(task->message_id.data, task->message_id.len, STORE_ID_MAX), ROW_MESSAGE_ID);
  task->priority = (uint8_t)number(d, ROW_PRIORITY, UINT8_MAX);
  refuse_if(d, !row_priority_fits(task->priority), ROW_PRIORITY);
}

static void decode_numbers(struct decoding *d, struct task *task) {
  task->attempt = (uint32_t)number(d, ROW_ATTEMPT, UINT32_MAX);
  refuse_if(d, task->attempt >= ATTEMPT_MAX, ROW_ATTEMPT); /* the next one has no number */
  task->failures = (uint32_t)number(d, ROW_FAILURES, ATTEMPT_MAX);
  task->recoveries = (uint32_t)number(d, ROW_RECOVERIES, ATTEMPT_MAX);
  task->revision = (uint32_t)number(d, ROW_REVISION, ATTEMPT_MAX);
  task->max_attempts = (uint32_t)number_or_null(d, ROW_MAX_ATTEMPTS, UINT32_MAX);
  refuse_if(d, d->row->fields[ROW_MAX_ATTEMPTS] && task->max_attempts == 0, ROW_MAX_ATTEMPTS);
  task->timeout_ms = (uint32_t)number_or_null(d, ROW_TIMEOUT, UINT32_MAX);
  refuse_if(d, d->row->fields[ROW_TIMEOUT] && task->timeout_ms == 0, ROW_TIMEOUT);
}

static void decode_host(struct decoding *d, struct task *task) {
  const struct duebox_bytes *host = &task->target_host;
  task->target_host = bytes(d, ROW_TARGET_HOST, SIZE_MAX);
  refuse_if(d, (host->len > 0) != (task->shard == SHARD_BOUND) || is_longer(host, HOST_MAX), ROW_TARGET_HOST);
}

static void decode_bytes(struct decoding *d, struct task *task) {
  task->task_key = bytes(d, ROW_TASK_KEY, SIZE_MAX);
  task->order_key = bytes(d, ROW_ORDER_KEY, SIZE_MAX);
  refuse_if(d, is_longer(&task->task_key, KEY_MAX), ROW_TASK_KEY);
  refuse_if(d, is_longer(&task->order_key, KEY_MAX), ROW_ORDER_KEY);
  task->moves = !d->row->fields[ROW_TARGET_HOST];
  task->target_host = (struct duebox_bytes){.data = ""};
  if (!task->moves)
    decode_host(d, task);
  task->changed_at = (struct duebox_bytes){.data = ""};
  if (d->row->fields[ROW_CHANGED])
    task->changed_at = bytes(d, ROW_CHANGED, VERSION_MAX);
  task->payload_len = number(d, ROW_PAYLOAD_LEN, UINT64_MAX);
  task->payload = (struct duebox_bytes){.data = d->row->fields[ROW_PAYLOAD], .len = d->row->lengths[ROW_PAYLOAD]};
  if (task->payload.data && task->payload.len != task->payload_len && !d->bad)
    d->bad = "payload";
  task->headers = or_empty(d->row, ROW_HEADERS);
  task->checkpoint = or_empty(d->row, ROW_CHECKPOINT);
  task->beside_len = task->headers.len + task->checkpoint.len;
  if (!task->payload.data)
    task->beside_len = number(d, ROW_BESIDE_LEN, UINT32_MAX);
  else if (!d->row->fields[ROW_HEADERS] && !d->bad)
    d->bad = "headers";
}

bool row_decode(const struct db_row *row, struct task *task, struct err *err) {
  struct decoding d = {.row = row};
  *task = (struct task){0};
  decode_identity(&d, task);
  if (d.bad)
    return err_set(err, DB_E_ROW, "the row with id %llu has no valid %s; %s", (unsigned long long)task->id, d.bad,
                   db_error_cure(DB_E_ROW));
  decode_place(&d, task);
  decode_numbers(&d, task);
  task->due_us = time_of(&d, ROW_DUE, false);
  int64_t first_us = time_of(&d, ROW_FIRST_DUE, true);
  task->asked_due_us = first_us ? first_us : task->due_us;
  task->expires_us = time_of(&d, ROW_EXPIRES, true);
  decode_bytes(&d, task);
  task->unreadable = d.bad;
  return true;
}

static bool same_bytes(const struct duebox_bytes *a, const struct duebox_bytes *b) {
  return a->len == b->len && (a->len == 0 || (a->data && b->data && memcmp(a->data, b->data, a->len) == 0));
}

bool row_same_content(const struct task *now, const struct task *sent) {
  return now->payload.data && same_bytes(&now->payload, &sent->payload) && same_bytes(&now->headers, &sent->headers) &&
         same_bytes(&now->route, &sent->route) && same_bytes(&now->task_key, &sent->task_key) &&
         same_bytes(&now->order_key, &sent->order_key) && now->due_us <= sent->due_us;
}

static void release(struct task_batch *batch) {
  struct db_rows *rows = batch->buffer;
  db_rows_free(&rows);
  free(batch->tasks);
  free(batch);
}

bool row_batch(struct db_result *result, struct task_batch **batch, struct err *err) {
  *batch = NULL;
  size_t rows = (size_t)(result->count - result->fetched);
  if (rows == 0) {
    db_results_free(result, 1);
    return true;
  }
  struct task_batch *made = calloc(1, sizeof *made);
  struct task *tasks = malloc(rows * sizeof *tasks); /* each is filled when it is decoded */
  struct err unknown = {0};
  if (!made || !tasks) {
    err_set(err, DB_E_NO_MEMORY, "no memory for %zu rows; %s", rows, db_error_cure(DB_E_NO_MEMORY));
    goto failed;
  }
  struct db_row row;
  size_t count = 0, bytes = 0;
  while (count < rows && db_next(result, &row, ROW_FIELD_COUNT)) {
    if (!row_decode(&row, &tasks[count], &unknown))
      continue;
    bytes += TASK_BYTES + tasks[count].payload.len + tasks[count].headers.len + tasks[count].checkpoint.len;
    tasks[count++].batch = made;
  }
  if (count == 0) {
    free(tasks);
    free(made);
    db_results_free(result, 1);
    return true;
  }
  *made =
      (struct task_batch){.count = count, .tasks = tasks, .buffer = result->rows, .release = release, .bytes = bytes};
  atomic_init(&made->open, (unsigned)count);
  result->rows = NULL;
  db_results_free(result, 1);
  *batch = made;
  return true;
failed:
  free(tasks);
  free(made);
  return false;
}
