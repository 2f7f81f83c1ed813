/* SPDX-License-Identifier: MIT */
#include "store_double_rows.h"

#include <stdlib.h>

enum { ATTEMPT_MAX = 2000000000, KEY_MAX = 255, HOST_MAX = 64 };

void chosen_add(struct chosen *chosen, const struct row *row) {
  chosen->at = table_grow(chosen->at, chosen->count, &chosen->cap, sizeof *chosen->at);
  chosen->at[chosen->count++] = row;
}

static int order(int64_t a, int64_t b) { return (a > b) - (a < b); }

static int by_index(const void *a, const void *b) {
  const struct row *x = *(const struct row *const *)a, *y = *(const struct row *const *)b;
  int found = order(x->state, y->state);
  found = found ? found : order(x->shard, y->shard);
  found = found ? found : blob_order(x->text[ROW_ROUTE], y->text[ROW_ROUTE]);
  found = found ? found : order(x->priority, y->priority);
  found = found ? found : order(row_next_us(x), row_next_us(y));
  return found ? found : (x->id > y->id) - (x->id < y->id);
}

void chosen_sort(struct chosen *chosen) {
  if (chosen->count)
    qsort(chosen->at, chosen->count, sizeof *chosen->at, by_index);
}

void chosen_free(struct chosen *chosen) {
  table_free(chosen->at);
  *chosen = (struct chosen){0};
}

/* --- rows as tasks --- */

bool name_fits(const struct blob *name, size_t max) {
  bool fits = name->len > 0 && name->len <= max;
  for (size_t i = 0; fits && i < name->len; i++)
    fits = name->data[i] >= '!' && name->data[i] <= '~';
  return fits;
}

bool row_is_misfit(const struct row *row) {
  return !name_fits(row->text[ROW_ROUTE], STORE_ROUTE_MAX) || row->priority < 1 || row->priority > 9;
}

static bool is_longer(const struct blob *text, size_t max) {
  size_t characters = 0;
  for (size_t i = 0; i < text->len; i++)
    characters += ((unsigned char)text->data[i] & 0xc0) != 0x80;
  return characters > max;
}

static struct duebox_bytes bytes_of(const struct blob *blob) {
  return (struct duebox_bytes){.data = blob ? blob->data : "", .len = blob ? blob->len : 0};
}

/* The first column, in the order in which they are read, without a valid value. */
static const char *unreadable(const struct row *row, bool moves) {
  const struct blob *host = row->text[ROW_TARGET_HOST];
  const struct {
    bool bad;
    const char *column;
  } columns[] = {
      {!name_fits(row->text[ROW_MESSAGE_ID], STORE_ID_MAX), "message_id"},
      {row->priority < 1 || row->priority > 9, "priority"},
      {!name_fits(row->text[ROW_ROUTE], STORE_ROUTE_MAX), "route"},
      {row->attempt >= ATTEMPT_MAX, "attempt"},
      {row->failures > ATTEMPT_MAX, "failures"},
      {row->recoveries > ATTEMPT_MAX, "recoveries"},
      {row_due_us(row) < 0,
       "COALESCE(due_at, created_at + INTERVAL LEAST(GREATEST(delay_ms, 0), 315360000000) * 1000 MICROSECOND)"},
      {row->first_due_us != TIME_NULL && row->first_due_us < 0, "first_due_at"},
      {row->expires_us != TIME_NULL && row->expires_us < 0, "expires_at"},
      {is_longer(row->text[ROW_TASK_KEY], KEY_MAX), "task_key"},
      {is_longer(row->text[ROW_ORDER_KEY], KEY_MAX), "order_key"},
      {!moves && ((host->len > 0) != (row->shard == SHARD_BOUND) || is_longer(host, HOST_MAX)),
       "IF(move_to_shard IS NULL AND move_to_host IS NULL, target_host, NULL)"},
  };
  for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++)
    if (columns[i].bad)
      return columns[i].column;
  return NULL;
}

bool double_task(const struct row *row, struct store_limit limit, char changed_at[TABLE_TIME_LEN + 1],
                 struct task *task) {
  bool moves = row_moves(row);
  if (row->text[ROW_MESSAGE_ID]->len > STORE_ID_MAX + STORE_WIDER)
    return false;
  table_time_text(row->changed_us, changed_at);
  *task = (struct task){
      .id = row->id,
      .shard = row->shard,
      .priority = row->priority,
      .state = row->state,
      .attempt = row->attempt,
      .failures = row->failures,
      .recoveries = row->recoveries,
      .revision = row->revision,
      .max_attempts = row->max_attempts,
      .timeout_ms = row->timeout_ms,
      .due_us = row_due_us(row),
      .asked_due_us = row_first_due_us(row),
      .expires_us = row->expires_us == TIME_NULL ? 0 : row->expires_us,
      .route = bytes_of(row->text[ROW_ROUTE]),
      .message_id = bytes_of(row->text[ROW_MESSAGE_ID]),
      .task_key = bytes_of(row->text[ROW_TASK_KEY]),
      .order_key = bytes_of(row->text[ROW_ORDER_KEY]),
      .headers = {.data = ""},
      .checkpoint = {.data = ""},
      .target_host = moves ? (struct duebox_bytes){.data = ""} : bytes_of(row->text[ROW_TARGET_HOST]),
      .changed_at = {.data = changed_at, .len = TABLE_TIME_LEN},
      .payload_len = row->text[ROW_PAYLOAD]->len,
      .beside_len = row->text[ROW_HEADERS]->len + (row->text[ROW_CHECKPOINT] ? row->text[ROW_CHECKPOINT]->len : 0),
      .moves = moves,
      .unreadable = unreadable(row, moves),
  };
  int64_t headers = (int64_t)row->text[ROW_HEADERS]->len, payload = (int64_t)task->payload_len;
  int64_t all = payload + (limit.content ? headers : (int64_t)task->beside_len);
  if (payload > limit.payload || all > limit.bytes)
    return true;
  task->payload = bytes_of(row->text[ROW_PAYLOAD]);
  task->headers = bytes_of(row->text[ROW_HEADERS]);
  if (!limit.content)
    task->checkpoint = bytes_of(row->text[ROW_CHECKPOINT]);
  return true;
}

static void release(struct task_batch *batch) {
  free(batch->buffer);
  free(batch->tasks);
  free(batch);
}

static void parts_of(struct task *task, struct duebox_bytes *parts[9]) {
  struct duebox_bytes *const all[9] = {&task->route,      &task->message_id,  &task->task_key,
                                       &task->order_key,  &task->headers,     &task->payload,
                                       &task->checkpoint, &task->target_host, &task->changed_at};
  memcpy(parts, all, sizeof all);
}

struct task_batch *double_batch(const struct chosen *rows, struct store_limit limit) {
  struct duebox_bytes *parts[9];
  char changed_at[TABLE_TIME_LEN + 1];
  struct task task;
  size_t size = 0, count = 0, bytes = 0;
  for (size_t i = 0; i < rows->count; i++) {
    if (!double_task(rows->at[i], limit, changed_at, &task))
      continue;
    parts_of(&task, parts);
    for (int k = 0; k < 9; k++)
      size += parts[k]->data ? parts[k]->len + 1 : 0;
    bytes += TASK_BYTES + task.payload.len + task.headers.len + task.checkpoint.len;
    count++;
  }
  if (count == 0)
    return NULL;
  struct task_batch *batch = calloc(1, sizeof *batch);
  struct task *tasks = calloc(count, sizeof *tasks);
  char *to = malloc(size);
  if (!batch || !tasks || !to)
    world_fail("no memory for %zu rows", count);
  *batch = (struct task_batch){.count = count, .tasks = tasks, .buffer = to, .release = release, .bytes = bytes};
  atomic_init(&batch->open, (unsigned)count);
  count = 0;
  for (size_t i = 0; i < rows->count; i++) {
    if (!double_task(rows->at[i], limit, changed_at, &tasks[count]))
      continue;
    parts_of(&tasks[count], parts);
    for (int k = 0; k < 9; k++) {
      if (!parts[k]->data)
        continue;
      memcpy(to, parts[k]->data, parts[k]->len + 1);
      parts[k]->data = to;
      to += parts[k]->len + 1;
    }
    tasks[count++].batch = batch;
  }
  return batch;
}
