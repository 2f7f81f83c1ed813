/* SPDX-License-Identifier: MIT */
#include "core/inbox_queue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TAILQ_HEAD(entry_list, inbox_entry);

struct inbox_queue {
  struct inbox_queue *next; /* an older one; never changes, so it can be followed without the lock */
  char source[80];
  /* Under the lock. */
  struct entry_list arrived;
  size_t count, bytes; /* of all entries that are not released */
  int64_t behind_us;   /* when it was full for the first time of a series; 0 = never */
  int64_t full_us;     /* ... and for the last time */
  bool low;            /* it has been nearly empty since */
  /* The inbox's thread. */
  struct entry_list waiting;
  struct inbox_entry *at; /* the next one of the walk */
};

static struct inbox_queue *find(const struct inbox_queues *queues, const char *source) {
  struct inbox_queue *queue = queues->newest;
  while (queue && strcmp(queue->source, source) != 0)
    queue = queue->next;
  return queue;
}

static struct inbox_queue *find_or_add(struct inbox_queues *queues, const char *source) {
  struct inbox_queue *queue = find(queues, source);
  if (queue || !(queue = calloc(1, sizeof *queue)))
    return queue;
  snprintf(queue->source, sizeof queue->source, "%s", source);
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

bool inbox_queues_put(struct inbox_queues *queues, const char *source, struct inbox_entry *entry, size_t bytes) {
  struct inbox_queue *queue = find_or_add(queues, source);
  if (!queue)
    return false;
  if (queue->count >= INBOX_QUEUE_RECORDS || queue->bytes >= INBOX_QUEUE_BYTES) {
    note_full(queue, entry->since_us);
    return false;
  }
  entry->queue = queue;
  entry->bytes = bytes;
  TAILQ_INSERT_TAIL(&queue->arrived, entry, link);
  queue->count++;
  queue->bytes += bytes;
  queues->arrived++;
  return true;
}

bool inbox_queues_has_room(const struct inbox_queues *queues, const char *source) {
  const struct inbox_queue *queue = find(queues, source);
  return !queue || (queue->count < INBOX_QUEUE_RECORDS / 2 && queue->bytes < INBOX_QUEUE_BYTES / 2);
}

void inbox_queues_release(const struct inbox_entry *entry) {
  entry->queue->count--;
  entry->queue->bytes -= entry->bytes;
  if (entry->queue->count < INBOX_QUEUE_RECORDS / 8 && entry->queue->bytes < INBOX_QUEUE_BYTES / 8)
    entry->queue->low = true;
}

/* The one behind, round and round. */
static struct inbox_queue *after(const struct inbox_queues *queues, const struct inbox_queue *queue) {
  return queue && queue->next ? queue->next : queues->known;
}

void inbox_queues_collect(struct inbox_queues *queues) {
  queues->known = queues->newest;
  for (struct inbox_queue *queue = queues->known; queue; queue = queue->next) {
    TAILQ_CONCAT(&queue->waiting, &queue->arrived, link);
    queue->at = TAILQ_FIRST(&queue->waiting);
  }
  queues->waiting += queues->arrived;
  queues->arrived = 0;
  queues->first = queues->turn = after(queues, queues->first);
}

struct inbox_entry *inbox_queues_next(struct inbox_queues *queues) {
  struct inbox_queue *queue = queues->turn;
  for (const struct inbox_queue *last = queue; queue && !queue->at;)
    if ((queue = after(queues, queue)) == last)
      return NULL;
  if (!queue)
    return NULL;
  struct inbox_entry *entry = queue->at;
  queue->at = TAILQ_NEXT(entry, link);
  queues->turn = after(queues, queue);
  return entry;
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
