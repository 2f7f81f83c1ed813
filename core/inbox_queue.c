/* SPDX-License-Identifier: MIT */
#include "core/inbox_queue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TAILQ_HEAD(entry_list, inbox_entry);

struct inbox_queue {
  struct inbox_queue *next; /* an older one; never changes, so it can be followed without the lock */
  char source[80];
  unsigned lane;             /* of those without a source; INBOX_LANES = it has one */
  struct inbox_room *shared; /* with other lanes; NULL = it has room of its own */
  /* Under the lock. */
  struct entry_list arrived;
  struct inbox_room room; /* in use */
  int64_t behind_us;      /* when it was full for the first time of a series; 0 = never */
  int64_t full_us;        /* ... and for the last time */
  bool low;               /* it has been nearly empty since */
  /* The inbox's thread. */
  struct entry_list waiting;
  struct inbox_entry *at; /* the next one of the walk */
  size_t row_bytes;       /* what its rows have had, the last ones most of all */
};

static struct inbox_queue *find(const struct inbox_queues *queues, const char *source, unsigned lane) {
  struct inbox_queue *queue = queues->newest;
  while (queue && (queue->lane != lane || strcmp(queue->source, source) != 0))
    queue = queue->next;
  return queue;
}

static struct inbox_queue *find_or_add(struct inbox_queues *queues, const char *source, unsigned lane) {
  struct inbox_queue *queue = find(queues, source, lane);
  if (queue || !(queue = calloc(1, sizeof *queue)))
    return queue;
  snprintf(queue->source, sizeof queue->source, "%s", source);
  queue->lane = lane;
  queue->shared = lane < INBOX_LANES ? &queues->asked : NULL;
  TAILQ_INIT(&queue->arrived);
  TAILQ_INIT(&queue->waiting);
  queue->next = queues->newest;
  return queues->newest = queue;
}

static bool is_behind(const struct inbox_queue *queue, int64_t now_us) {
  return queue->behind_us && !(queue->low && now_us - queue->full_us > INBOX_QUEUE_CAUGHT_UP_US);
}

static void note_full(struct inbox_queue *queue, int64_t now_us) {
  if (!is_behind(queue, now_us))
    queue->behind_us = now_us;
  queue->full_us = now_us;
  queue->low = false;
}

int64_t inbox_queues_behind(const struct inbox_queues *queues, int64_t now_us, const char **source) {
  int64_t behind_us = 0;
  for (const struct inbox_queue *queue = queues->newest; queue; queue = queue->next)
    if (is_behind(queue, now_us) && (!behind_us || queue->behind_us < behind_us)) {
      behind_us = queue->behind_us;
      *source = queue->source;
    }
  return behind_us;
}

/* Whether there is no room for one more, if that is all there is. */
static bool is_full(const struct inbox_room *used, size_t records, size_t bytes) {
  return used->count >= records || used->bytes >= bytes;
}

/* Where room is shared, a lane in which nothing waits has some as long as there is any. */
static bool has_no_room(const struct inbox_queue *queue) {
  const struct inbox_room *shared = queue->shared;
  if (!shared)
    return is_full(&queue->room, INBOX_QUEUE_RECORDS, INBOX_QUEUE_BYTES);
  return is_full(shared, INBOX_QUEUE_RECORDS, INBOX_QUEUE_BYTES) ||
         (queue->room.count > 0 &&
          is_full(&queue->room, INBOX_QUEUE_RECORDS - shared->count, INBOX_QUEUE_BYTES - shared->bytes));
}

static void use_room(struct inbox_room *room, size_t bytes) {
  room->count++;
  room->bytes += bytes;
}

static void free_room(struct inbox_room *room, size_t bytes) {
  room->count--;
  room->bytes -= bytes;
}

static bool put(struct inbox_queues *queues, struct inbox_queue *queue, struct inbox_entry *entry, size_t bytes) {
  if (!queue)
    return false;
  if (has_no_room(queue)) {
    note_full(queue, entry->since_us);
    return false;
  }
  entry->queue = queue;
  entry->bytes = bytes;
  TAILQ_INSERT_TAIL(&queue->arrived, entry, link);
  use_room(&queue->room, bytes);
  if (queue->shared)
    use_room(queue->shared, bytes);
  queues->arrived++;
  return true;
}

bool inbox_queues_put(struct inbox_queues *queues, const char *source, struct inbox_entry *entry, size_t bytes) {
  return put(queues, find_or_add(queues, source, INBOX_LANES), entry, bytes);
}

bool inbox_queues_put_asked(struct inbox_queues *queues, uint32_t lane, struct inbox_entry *entry, size_t bytes) {
  return put(queues, find_or_add(queues, "http", lane % INBOX_LANES), entry, bytes);
}

bool inbox_queues_has_room(const struct inbox_queues *queues, const char *source) {
  const struct inbox_queue *queue = find(queues, source, INBOX_LANES);
  return !queue || !is_full(&queue->room, INBOX_QUEUE_RECORDS / 2, INBOX_QUEUE_BYTES / 2);
}

void inbox_queues_release(const struct inbox_entry *entry) {
  struct inbox_queue *queue = entry->queue;
  free_room(&queue->room, entry->bytes);
  if (queue->shared)
    free_room(queue->shared, entry->bytes);
  if (!is_full(&queue->room, INBOX_QUEUE_RECORDS / 8, INBOX_QUEUE_BYTES / 8))
    queue->low = true;
}

/* The one behind, round and round. */
static struct inbox_queue *after(const struct inbox_queues *queues, const struct inbox_queue *queue) {
  return queue && queue->next ? queue->next : queues->known;
}

/* What an entry is likely to be in the transaction. */
static size_t cost(const struct inbox_entry *entry) { return entry->bytes + entry->queue->row_bytes; }

static bool is_large(const struct inbox_entry *entry) { return cost(entry) > INBOX_LARGE_BYTES; }

/* Which kind of walk it is: large ones have every other one, or each one while there are no others. */
static bool choose_large(const struct inbox_queues *queues) {
  bool large = false, small = false;
  for (const struct inbox_queue *queue = queues->known; queue; queue = queue->next) {
    large = large || (queue->at && is_large(queue->at));
    small = small || (queue->at && !is_large(queue->at));
  }
  return large && !(small && queues->large);
}

void inbox_queues_collect(struct inbox_queues *queues) {
  queues->known = queues->newest;
  for (struct inbox_queue *queue = queues->known; queue; queue = queue->next) {
    TAILQ_CONCAT(&queue->waiting, &queue->arrived, link);
    queue->at = TAILQ_FIRST(&queue->waiting);
  }
  queues->waiting += queues->arrived;
  queues->arrived = 0;
  queues->bytes = 0;
  queues->large = choose_large(queues);
  for (struct inbox_queue *queue = queues->known; queue; queue = queue->next)
    if (queue->at && is_large(queue->at) != queues->large)
      queue->at = NULL;
  queues->turn = after(queues, queues->first[queues->large]);
}

/* The next queue in turn whose next entry fits. What does not is the first of its queue the next time. */
static struct inbox_queue *next_queue(struct inbox_queues *queues) {
  struct inbox_queue *queue = queues->turn, *last = queue;
  do {
    if (queue && queue->at && queues->bytes > 0 &&
        (queues->bytes + cost(queue->at) > INBOX_WALK_BYTES || (is_large(queue->at) && !queues->large)))
      queue->at = NULL;
    if (queue && queue->at)
      return queue;
    queue = after(queues, queue);
  } while (queue != last);
  return NULL;
}

struct inbox_entry *inbox_queues_next(struct inbox_queues *queues) {
  struct inbox_queue *queue = next_queue(queues);
  if (!queue)
    return NULL;
  struct inbox_entry *entry = queue->at;
  if (queues->bytes == 0)
    queues->first[queues->large] = queue;
  queues->bytes += cost(entry) + 1;
  queue->at = TAILQ_NEXT(entry, link);
  queues->turn = after(queues, queue);
  return entry;
}

void inbox_queues_weigh(const struct inbox_entry *entry, size_t row_bytes) {
  size_t *known = &entry->queue->row_bytes;
  *known = *known - *known / 4 + row_bytes / 4;
}

void inbox_queues_take(struct inbox_queues *queues, struct inbox_entry *entry) {
  TAILQ_REMOVE(&entry->queue->waiting, entry, link);
  queues->waiting--;
}

void inbox_queues_return(struct inbox_queues *queues, struct inbox_entry *entry) {
  TAILQ_INSERT_HEAD(&entry->queue->waiting, entry, link);
  queues->waiting++;
}

int64_t inbox_queues_oldest(const struct inbox_queues *queues) {
  int64_t oldest_us = 0;
  for (const struct inbox_queue *queue = queues->known; queue; queue = queue->next) {
    const struct inbox_entry *entry = TAILQ_FIRST(&queue->waiting);
    if (entry && (!oldest_us || entry->since_us < oldest_us))
      oldest_us = entry->since_us;
  }
  return oldest_us;
}

void inbox_queues_free(struct inbox_queues *queues) {
  for (struct inbox_queue *queue; (queue = queues->newest);) {
    queues->newest = queue->next;
    free(queue);
  }
  *queues = (struct inbox_queues){0};
}
