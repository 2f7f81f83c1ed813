/* SPDX-License-Identifier: MIT
 *
 * core/aside.h - results whose rows somebody else holds, or of whose route the server refuses some: set aside per
 * route, and tried again in turn, the latter by themselves.
 *
 * Each task has one entry that is tried, and its later results wait behind it. What is tried again is taken from the
 * routes in turn, and from each route in turn, so that rows which stay locked keep no other waiting. Each route has
 * room for so many, and all together too. What finds none may wait where it is, for a while: mostly a lock is over
 * soon. Pure: no clock, no lock, no memory but its own.
 *
 * @thread the inbox's
 */
#ifndef CORE_ASIDE_H
#define CORE_ASIDE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/attr.h"
#include "core/flight.h" /* uthash as we use it */
#include "core/store.h"

enum { ASIDE_PER_ROUTE = 4096, ASIDE_MAX = 16384 };
enum { ASIDE_BYTES_PER_ROUTE = 4 * 1024 * 1024, ASIDE_BYTES_MAX = 16 * 1024 * 1024 };

struct aside_route;

/* With which others one is tried. */
enum aside_kind {
  ASIDE_BUSY,  /* of all routes */
  ASIDE_APART, /* of its route alone */
  ASIDE_KINDS
};

/* Part of what is set aside. */
struct aside_entry {
  struct aside_entry *next;   /* of its route: the one to be tried after it */
  struct aside_entry *behind; /* the next result of the same task */
  struct aside_route *route;
  const char *task; /* message id; the owner's */
  size_t bytes;
  enum aside_kind kind; /* of the one that is tried */
  UT_hash_handle hh;    /* by task */
};

/* All zero is empty. */
struct aside {
  struct aside_route *routes; /* in turn: the first is next */
  struct aside_entry *by_task;
  size_t count, bytes;
  size_t tried[ASIDE_KINDS]; /* how many of them are tried, by kind */
  int64_t full_us;           /* monotonic: since when there is no room for all together; 0 = there is */
};

/* Sets an entry aside, whose task has none there. False: no room for its route, or no memory. */
MUSTCHECK bool aside_put(struct aside *aside, struct aside_entry *entry, enum aside_kind kind, const char *route,
                         const char *task, size_t bytes);
/* From now on the entry, which is one that is tried, is tried with others, as the last one. */
void aside_turn_to(struct aside *aside, struct aside_entry *entry, enum aside_kind kind);
/* The entry of a task that is tried, or NULL. */
struct aside_entry *aside_find(const struct aside *aside, const char *task);
/* Has a later result of the same task wait behind it. False: no room. */
MUSTCHECK bool aside_follow(struct aside *aside, struct aside_entry *first, struct aside_entry *entry, const char *task,
                            size_t bytes);
/* The next busy ones to be tried, each once; they stay. Returns how many. */
size_t aside_next(struct aside *aside, struct aside_entry **out, size_t most);
/* The same for those that are tried apart: of the next route that has some. */
size_t aside_next_apart(struct aside *aside, struct aside_entry **out, size_t most);
/* The result is dealt with; the next one of its task is tried in its place. */
void aside_remove(struct aside *aside, struct aside_entry *entry);
/* Whether one that would find no room is to wait where it is, and to be put later: there has been none for less than
 * patience_us, and there can be. That ends when half of it is free. now_us: monotonic. */
MUSTCHECK bool aside_is_to_wait(struct aside *aside, const char *route, size_t bytes, int64_t now_us,
                                int64_t patience_us);
/* Removes any; NULL when there is none. */
struct aside_entry *aside_pop(struct aside *aside);

#endif
