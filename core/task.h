/* SPDX-License-Identifier: MIT
 *
 * core/task.h - a row of the outbox in memory.
 *
 * Rows come from the store in batches: one batch is one read buffer with its tasks, freed when the last of them is
 * settled. Everything a task points to lives in the buffer, so a payload is used in place until it is acknowledged. A
 * task has one owner at any time (scheduler, driver or settler) and moves between them; it is never shared.
 */
#ifndef CORE_TASK_H
#define CORE_TASK_H

#include <duebox/task.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/task_state.h"

struct lane;
struct task_batch;

struct task {
  /* As the row says. */
  uint64_t id;
  uint8_t shard;
  uint8_t priority;
  enum task_state state;
  uint32_t attempt; /* attempts handed out so far, as the row says (a recorded claim counts itself) */
  uint32_t failures;
  uint32_t recoveries;
  uint32_t revision;     /* how often the content was changed after a copy had left */
  uint32_t max_attempts; /* 0 = the route's */
  uint32_t timeout_ms;   /* 0 = the route's */
  int64_t due_us;        /* when this attempt is due */
  int64_t asked_due_us;  /* when it was first asked for: due_us unless a retry has moved it */
  int64_t expires_us;    /* 0 = never */
  struct duebox_bytes route, message_id, task_key, order_key, headers, checkpoint, target_host;
  struct duebox_bytes changed_at;   /* which version of the row this is: opaque */
  struct duebox_bytes payload;      /* data NULL when over the limit, then headers and checkpoint are empty too: */
  uint64_t payload_len, beside_len; /* how large they are, the latter both headers and checkpoint */
  bool moves;                       /* somebody asks for another shard or host: it goes there, and nowhere else */
  const char *unreadable;           /* a column without a valid value, so that it can never be sent; NULL = none */

  /* In memory only. */
  struct task_batch *batch;
  struct duebox_task view;           /* what the plugin sees; view.token names this task */
  struct duebox_header *header_list; /* own allocation, or NULL */
  char *reply_to;                    /* own allocation, or NULL: a callback URL of this attempt */
  uint32_t attempt_now;              /* the number this attempt carries */
  bool recorded;                     /* the claim is in the table */
};

struct task_batch {
  atomic_uint open; /* tasks not yet released */
  size_t count;
  struct task *tasks;
  void *buffer; /* the store's: freed by release */
  void (*release)(struct task_batch *batch);
  size_t bytes;        /* what it holds, about */
  atomic_size_t *held; /* where that is counted, or NULL */
};

enum { TASK_BYTES = 1024 }; /* what a row takes in memory beside task_size(), about */

/* What of a row may be large: it counts for the limits on bytes. */
static inline int64_t task_size(const struct task *task) { return (int64_t)(task->payload_len + task->beside_len); }

/* The version of a row as a number: the digits of changed_at, beginning with the year of the century. 0 = not known. */
uint64_t task_version(const struct duebox_bytes *changed_at);

/* Counts the memory of a batch there until it is freed. */
void task_batch_count(struct task_batch *batch, atomic_size_t *held);
/* Moves a task that nobody else knows yet into memory of its own, and gives its place in its batch back: the buffer of
 * a batch lives as long as its slowest task. Without memory it stays where it is. Returns it. */
struct task *task_apart(struct task *task);

/* Gives one task of a batch back; frees the batch with the last. Any thread. */
void task_release(struct task *task);

#endif
