/* SPDX-License-Identifier: MIT
 *
 * core/targets.h - the targets of a route that are in trouble: the topics, routing keys or URLs that its templates have
 * expanded to, each with a health of its own.
 *
 * A target that works is not known here, so a route without trouble pays nothing. Their number is bounded: beyond it
 * the one of the route that was met longest ago is forgotten, and its next row finds out anew. A few of each route have
 * room whatever others have: one that is dead and not known is tried with each of its tasks.
 */
#ifndef CORE_TARGETS_H
#define CORE_TARGETS_H

#include <duebox/task.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/attr.h"
#include "core/base/err.h"
#include "core/config.h"
#include "core/health.h"

enum {
  TARGETS_PER_ROUTE = 64,
  TARGETS_MAX = 1024,     /* of all routes, */
  TARGETS_LEAST = 4,      /* and so many of each in any case */
  TARGET_NAME_MAX = 2048, /* bytes; what differs beyond that only is one target */
};

struct target {
  struct health health;
  int64_t met_us;      /* monotonic: when a row for it was met last */
  char message_id[65]; /* of the row whose outcome suspended it */
  char task_key[65];   /* the same */
  struct target *next;
  size_t len;
  char name[];
};

struct targets {
  struct target *first;
  size_t count;
};

/* Writes the target of a task by its route's options that make it up (DUEBOX_OPT_TARGET), and returns its length. */
size_t target_name(const struct route_config *route, const struct duebox_task *task, char name[TARGET_NAME_MAX + 1]);
/* Whether the task may go there: false with a reason when an option that makes up its target expands to a topic or
 * queue of results, where whoever wrote the row would answer for other tasks, in our name and with our rights. */
MUSTCHECK bool target_permitted(const struct route_config *route, const struct duebox_task *task, struct err *err);
struct target *targets_find(const struct targets *targets, const char *name, size_t len);
/* The target of that name, made when there is none; NULL = no memory. *total counts those of all routes. */
struct target *targets_make(struct targets *targets, const char *name, size_t len, int64_t now_us, size_t *total);
void targets_drop(struct targets *targets, struct target *target, size_t *total);
void targets_clear(struct targets *targets, size_t *total);

/* The name for people. Of a URL the host and the task's key: user, path and query often hold a secret. */
void target_label(const char *name, const char *task_key, char *out, size_t cap);

#endif
