/* SPDX-License-Identifier: MIT
 *
 * core/inbox_internal.h - what the files of the inbox share: inbox.c, a record from its arrival to its end,
 * inbox_item.c, what is kept of it, and inbox_wait.c, those who wait for the end of theirs.
 */
#ifndef CORE_INBOX_INTERNAL_H
#define CORE_INBOX_INTERNAL_H

#include <stdatomic.h>
#include <sys/queue.h>

#include "core/aside.h"
#include "core/base/log_repeat.h"
#include "core/base/sync.h"
#include "core/inbox.h"
#include "core/inbox_queue.h"
#include "core/record.h"
#include "core/result_origin.h"

/* Somebody who waits for one record; lives on the waiter's stack, guarded by the inbox's lock. */
struct waiter {
  LIST_ENTRY(waiter) link;
  struct item *item; /* until it is done; item->waiter is this one */
  struct cond done_cond;
  bool held_up; /* its item is set aside, and not for a moment */
  bool done, committed;
  struct store_result *result;
  struct err *flaw;
};

struct item {
  struct inbox_entry entry; /* while it waits for its turn */
  struct aside_entry aside; /* in use while its row is somebody else's, or it is early: fate RESULT_BUSY */
  int64_t early_us;         /* monotonic: since when it is early; 0 = it is not */
  unsigned early_tries;
  int64_t busy_us; /* monotonic: since when its row is somebody else's */
  struct store_result result;
  struct driver *driver; /* NULL for records without a source, which ... */
  uint32_t lane;         /* ... wait in lanes */
  uint64_t cookie;
  struct waiter *waiter; /* NULL, or who waits; cleared when it gives up */
  bool truncated;
  size_t full_len;
  char *body;
  char source[80];
  char origin[RESULT_ORIGIN_SIZE];
  struct record_road road;
  char road_id[RECORD_ID_MAX + 1]; /* what road.message_id points to */
  char why[300];                   /* why it is broken, or not taken */
};

struct inbox {
  struct inbox_env env;
  struct mutex lock;
  struct cond filled;
  struct inbox_queues queues; /* items that have not been tried yet */
  LIST_HEAD(waiters, waiter) waiters;
  unsigned held_up; /* of them */
  bool stopping;
  struct thread thread;
  /* The inbox's thread. */
  struct aside aside;        /* items whose row somebody else holds */
  int64_t aside_at_us;       /* when to try them again */
  bool crowded;              /* some found no room aside and wait in their queue: the next batch is not at once */
  struct log_repeat trouble; /* with the database, as it was logged */
  struct log_repeat held;    /* rows that are somebody else's, as they were logged */
  struct log_repeat strays;  /* what went to quarantine, as it was logged */
  struct log_repeat late;    /* what has waited for its turn, as it was logged */
  int64_t trouble_us;        /* monotonic: when a batch could not be written; 0 = never */
  size_t checkpoint_max;     /* of the configuration */
  atomic_bool on_hold;
  struct log_quota dead;  /* lines */
  gauge writing_since_us; /* monotonic: since when a batch is being written; 0 = none is */
  gauge waiting_since_us; /* monotonic: since when the oldest record waits that this batch has passed over; 0 = none */
};

/* --- inbox_item.c --- */

/* A copy of what is given; NULL = no memory. */
MUSTCHECK struct item *inbox_new_item(const char *source, const char *origin, const char *body, size_t len);
void inbox_set_road(struct item *item, const struct record_road *road);
void inbox_free_item(struct item *item);

/* --- inbox.c --- */

/* Under the lock. False: no room. */
MUSTCHECK bool inbox_put(struct inbox *inbox, struct item *item);
/* Tells whoever waits, acknowledges to the source, frees. */
void inbox_finish(struct inbox *inbox, struct item *item, bool committed);
struct item *inbox_item_of(struct aside_entry *entry);

/* --- inbox_wait.c --- */

/* Under the lock: tells the item's waiter how it ended. */
void inbox_answer(struct inbox *inbox, struct item *item, bool committed);
/* The item is set aside, and not for a moment. A few may wait for that; the others learn that nothing is known yet, and
 * the item is tried again all the same. The inbox's thread. */
void inbox_hold_up(struct inbox *inbox, struct item *item);
/* A record that is aside already came once more, or its task has enough of them: it takes no room. True: it is dealt
 * with. Whoever waits for it waits for the one that is there, unless somebody does. The inbox's thread. */
MUSTCHECK bool inbox_join(struct inbox *inbox, struct item *item, struct aside_entry *first);

#endif
