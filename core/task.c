/* SPDX-License-Identifier: MIT */
#include "core/task.h"

#include <stdlib.h>
#include <string.h>

void task_release(struct task *task) {
  struct task_batch *batch = task->batch;
  free(task->header_list);
  free(task->reply_to);
  task->header_list = NULL;
  task->reply_to = NULL;
  if (atomic_fetch_sub_explicit(&batch->open, 1, memory_order_acq_rel) != 1)
    return;
  if (batch->held)
    atomic_fetch_sub_explicit(batch->held, batch->bytes, memory_order_relaxed);
  batch->release(batch);
}

uint64_t task_version(const struct duebox_bytes *changed_at) {
  enum { CENTURY = 2, DIGITS_MAX = 18 };
  uint64_t version = 0;
  for (size_t i = CENTURY, digits = 0; i < changed_at->len && digits < DIGITS_MAX; i++)
    if (changed_at->data[i] >= '0' && changed_at->data[i] <= '9') {
      version = version * 10 + (uint64_t)(changed_at->data[i] - '0');
      digits++;
    }
  return version;
}

void task_batch_count(struct task_batch *batch, atomic_size_t *held) {
  batch->held = held;
  atomic_fetch_add_explicit(held, batch->bytes, memory_order_relaxed);
}

/* A batch of one. */
struct apart {
  struct task_batch batch;
  struct task task;
  char bytes[];
};

static void release_apart(struct task_batch *batch) { free(batch->buffer); }

/* Texts end with a NUL, which their lengths do not count. */
static size_t room_for(const struct duebox_bytes *bytes) { return bytes->data ? bytes->len + 1 : 0; }

static char *copy(char *to, struct duebox_bytes *bytes) {
  if (!bytes->data)
    return to;
  if (bytes->len)
    memcpy(to, bytes->data, bytes->len);
  to[bytes->len] = '\0';
  bytes->data = to;
  return to + bytes->len + 1;
}

struct task *task_apart(struct task *task) {
  struct task moved = *task;
  struct duebox_bytes *const parts[] = {&moved.route,      &moved.message_id,  &moved.task_key,
                                        &moved.order_key,  &moved.headers,     &moved.payload,
                                        &moved.checkpoint, &moved.target_host, &moved.changed_at};
  size_t size = sizeof(struct apart);
  for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
    size += room_for(parts[i]);
  struct apart *apart = malloc(size);
  if (!apart)
    return task;
  char *to = apart->bytes;
  for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
    to = copy(to, parts[i]);
  apart->batch =
      (struct task_batch){.count = 1, .tasks = &apart->task, .buffer = apart, .release = release_apart, .bytes = size};
  atomic_init(&apart->batch.open, 1);
  if (task->batch->held)
    task_batch_count(&apart->batch, task->batch->held);
  apart->task = moved;
  apart->task.batch = &apart->batch;
  task->header_list = NULL;
  task->reply_to = NULL;
  task_release(task);
  return &apart->task;
}
