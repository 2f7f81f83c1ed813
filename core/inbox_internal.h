/* SPDX-License-Identifier: MIT
 *
 * core/inbox_internal.h - what the files of the inbox share: inbox.c, a record from its arrival to its end,
 * inbox_item.c, what is kept of it, inbox_aside.c, what is set aside meanwhile, and inbox_wait.c, those who wait for
 * the end of theirs.
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
#include "core/refusals.h"
#include "core/result_origin.h"

enum { INBOX_BATCH_MAX = 500 };

/* What a batch is of. */
enum inbox_batch {
  BATCH_NEW,   /* of all sources */
  BATCH_AGAIN, /* of what was set aside, of all routes, */
  BATCH_APART, /* or of one of which the server refuses some */
};

/* Somebody who waits for one record; lives on the waiter's stack, guarded by the inbox's lock. */
struct waiter {
  LIST_ENTRY(waiter) link;
  struct item *item; /* until it is done; item->waiter is this one */
  struct cond done_cond;
  bool held_up;    /* its item is set aside, and not for a moment */
  const char *why; /* ... so long as it is */
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
  unsigned yields;       /* the driver's, when it came */
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
  struct aside aside;        /* items whose row somebody else holds, or of whose route the server refuses some */
  int64_t aside_at_us;       /* when to try the former again, */
  int64_t aside_from_us;     /* not before this, whatever is to be soon: the last try met locks, and took long; */
  size_t aside_rows;         /* so many of them at once, */
  size_t aside_left;         /* until each has been tried: so many are left; */
  struct refusals_pace pace; /* and the latter, */
  size_t apart_rows;         /* of which so many are tried at once; */
  bool others;               /* the last new batch had some that are not tried apart; */
  bool was_apart;            /* the last batch was of those */
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
  gauge given_back;       /* how often in a row: each time they are kept twice as long */
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
void inbox_note_late(struct inbox *inbox, const char *source, int64_t since_us, int64_t now_us);

/* --- inbox_aside.c --- */

struct item *inbox_item_of(struct aside_entry *entry);
/* Whether there is no room aside for a record of a source, which is to wait for some in its queue. like: itself, or the
 * one of its task that is aside. */
MUSTCHECK bool inbox_waits_for_room(struct inbox *inbox, const struct item *item, const struct store_result *like);
/* Its row is somebody else's, what was sent is not recorded yet, or it is to wait for the turn of its route. first: the
 * result of its task that waits already, or NULL. Where its route has too many such results it is not taken from
 * somebody who waits, and will offer it again. False: nobody would. It is to be applied once more: as one that cannot
 * wait, or as one that is broken and kept in the quarantine, to be replayed. */
MUSTCHECK bool inbox_put_aside(struct inbox *inbox, struct item *item, struct aside_entry *first);
/* Which of those that were put aside are to be tried now; BATCH_NEW: none. waiting: there are new ones. */
enum inbox_batch inbox_aside_due(const struct inbox *inbox, bool waiting);
/* When some of them are, if nothing comes before; INT64_MAX: none is there. */
int64_t inbox_aside_at(const struct inbox *inbox);
/* Some of those put aside, and what waits behind them. They stay there. Returns how many. */
size_t inbox_take_again(struct inbox *inbox, enum inbox_batch kind, struct item *items[INBOX_BATCH_MAX]);
/* What a batch came to decides when the next one is of those that are tried apart. */
void inbox_turn_over(struct inbox *inbox, enum inbox_batch kind, const struct store_result *results, size_t n,
                     int64_t began_us);
/* What was busy is set aside, or stays there; what was aside and is not busy any more leaves it. *refused: there was no
 * room for these. */
void inbox_sort_busy(struct inbox *inbox, struct item **items, const struct store_result *results, size_t n,
                     struct item **refused, size_t *refused_count);

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
