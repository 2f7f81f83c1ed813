/* SPDX-License-Identifier: MIT
 *
 * duebox/task.h - what a plugin sees of a task.
 *
 * A task view is read-only and borrowed: it and everything it points to stay valid from the
 * submit() call that hands it over until complete() has been called with its token. Plugins may
 * therefore send the payload in place. Nothing here may be freed or changed by a plugin.
 */
#ifndef DUEBOX_TASK_H
#define DUEBOX_TASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes with a length. Never NUL-terminated by contract; may hold any byte. data is never NULL. */
struct duebox_bytes {
  const char *data;
  size_t len;
};

/* One header of the application. name is NUL-terminated and unique within a task; value holds no CR, LF or NUL
 * (the host has checked: such a task never reaches a plugin). No name begins with "duebox-", in any case: those are for
 * what duebox says, and the host leaves out the application's (since 1.9). */
struct duebox_header {
  const char *name;
  struct duebox_bytes value;
};

struct duebox_task {
  size_t struct_size;             /* sizeof(struct duebox_task) of the host: read no field beyond it */
  uint64_t token;                 /* names this attempt towards the host; not meaningful to people */
  const char *message_id;         /* the idempotency id, the same in every attempt; NUL-terminated ASCII */
  const char *route;              /* route name, NUL-terminated */
  uint32_t attempt;               /* 1 for the first attempt; never reused for the same message id */
  uint32_t timeout_ms;            /* whole time this attempt may take, at the destination too */
  int64_t due_us;                 /* when it was asked for: microseconds since 1970-01-01T00:00:00Z */
  uint8_t priority;               /* 1..9, 9 first */
  struct duebox_bytes key;        /* business key (task_key); empty when there is none */
  struct duebox_bytes payload;    /* the body, to be sent unchanged */
  struct duebox_bytes checkpoint; /* what a long task stored last; empty when there is none */
  const struct duebox_header *headers;
  size_t header_count;
  const char *reply_to;   /* where the consumer is to answer (topic, queue or URL), or NULL */
  const void *route_data; /* this plugin's own options of the route: the struct its route_options rows fill */
  uint32_t revision;      /* since 1.1: how often the content was changed after a copy had left; 0 = never */
  uint32_t unused;        /* 0. An older host has padding here, which its struct_size covers */
  /* Since 1.9. A result counts that comes otherwise than with the call, whether there is a reply_to or not: the route
   * says `result: expected`, or an entry of `results` takes its results. Read it by the function below. */
  bool result_awaited;
};

/* The revision, also where the host is older than the field. */
static inline uint32_t duebox_task_revision(const struct duebox_task *task) {
  return task->struct_size > offsetof(struct duebox_task, revision) ? task->revision : 0;
}

/* Whether a result may come otherwise than with the call and than to reply_to. A host that is older than the field
 * waits for one whenever the plugin says that it comes later: true. */
static inline bool duebox_task_result_awaited(const struct duebox_task *task) {
  return task->struct_size <= offsetof(struct duebox_task, result_awaited) || task->result_awaited;
}

#endif
