/* SPDX-License-Identifier: MIT
 *
 * core/inbox_queue.h - the results that wait in the inbox: a queue for each source, taken from in turn.
 *
 * Each source has room of its own, so that one that floods the inbox fills only its own queue, and waits only behind
 * itself. What came without a source (over HTTP) is asked for by somebody who waits: it has a queue for each lane, and
 * these share the room of a source, of which none may have more than is left. An entry that is passed over stays where
 * it is. What was put in is first collected under the inbox's lock and can then be walked without it.
 *
 * A walk gives what one transaction can write in a moment. Entries that are large, or whose rows were, come in walks of
 * their own, every other one while others wait: who has small ones waits for one such transaction, and not for all that
 * wait. Pure: no clock, no lock, no memory but its own.
 *
 * @thread any for put, has_room and release, the inbox's for the rest
 * @locks  the inbox's, for what says so
 */
#ifndef CORE_INBOX_QUEUE_H
#define CORE_INBOX_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "core/base/attr.h"

/* Of one source: with either it is full. */
enum { INBOX_QUEUE_RECORDS = 2048, INBOX_QUEUE_BYTES = 8 * 1024 * 1024 };
/* Queues for lanes; two that share one wait for each other. */
enum { INBOX_LANES = 256 };
/* Of a walk, records with their rows, beyond its first entry; and what makes an entry a large one. */
enum { INBOX_WALK_BYTES = 512 * 1024, INBOX_LARGE_BYTES = 8 * 1024 };
/* A source whose queue has become nearly empty, and that has not been full again for so long, has caught up. */
enum { INBOX_QUEUE_CAUGHT_UP_US = 5 * 1000 * 1000 };

struct inbox_queue;

/* Part of what waits. */
struct inbox_entry {
  TAILQ_ENTRY(inbox_entry) link;
  struct inbox_queue *queue;
  size_t bytes;
  int64_t since_us; /* the caller's: when it came, set before it is put */
};

/* Entries that are not released, and their bytes. */
struct inbox_room {
  size_t count, bytes;
};

/* All zero is empty. */
struct inbox_queues {
  struct inbox_room asked;      /* under the lock: of all lanes */
  struct inbox_queue *newest;   /* under the lock, as the next two */
  size_t arrived;               /* put and not collected */
  struct inbox_queue *known;    /* the newest one when they were collected; those behind it do not change */
  struct inbox_queue *turn;     /* the queue to look at next */
  bool large;                   /* this walk is of large entries */
  size_t bytes;                 /* what it has given */
  struct inbox_queue *first[2]; /* of the last walk of either kind, the queue it began with; the next one is the next */
  size_t waiting;               /* collected and not taken */
};

/* Puts an entry into the queue of its source. False: that is full, or there is no memory for one. Under the lock. */
MUSTCHECK bool inbox_queues_put(struct inbox_queues *queues, const char *source, struct inbox_entry *entry,
                                size_t bytes);
/* The same for one without a source. Any lane. */
MUSTCHECK bool inbox_queues_put_asked(struct inbox_queues *queues, uint32_t lane, struct inbox_entry *entry,
                                      size_t bytes);
/* Whether the queue of a source has so much room again that it is worth to go on. Under the lock. */
bool inbox_queues_has_room(const struct inbox_queues *queues, const char *source);
/* Since when a source has had more than there is room for, time and again, so that its records wait where they come
 * from; of all sources the earliest, 0 = none has. *source: which; it lives as long as the queues. Under the lock. */
int64_t inbox_queues_behind(const struct inbox_queues *queues, int64_t now_us, const char **source);
/* The room of an entry that was taken is free again. Under the lock. */
void inbox_queues_release(const struct inbox_entry *entry);
/* What has arrived waits now, and is walked from its start. Under the lock. */
void inbox_queues_collect(struct inbox_queues *queues);
/* The next entry of the walk, from each queue in turn; NULL at the end: of what waits, or of what fits. It stays,
 * unless it is taken. */
struct inbox_entry *inbox_queues_next(struct inbox_queues *queues);
/* Takes the entry out that the walk has come to. Its room is kept until it is released. */
void inbox_queues_take(struct inbox_queues *queues, struct inbox_entry *entry);
/* An entry that was taken waits again, in front of all others of its source; its room was kept. */
void inbox_queues_return(struct inbox_queues *queues, struct inbox_entry *entry);
/* An entry that was taken met a row of so many bytes: others of its queue are likely to. */
void inbox_queues_weigh(const struct inbox_entry *entry, size_t row_bytes);
/* since_us of the oldest entry that waits; 0 = there is none. */
int64_t inbox_queues_oldest(const struct inbox_queues *queues);
/* Frees the queues. Nothing waits any more. */
void inbox_queues_free(struct inbox_queues *queues);

#endif
