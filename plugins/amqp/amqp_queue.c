/* SPDX-License-Identifier: MIT */
#include "amqp_queue.h"

#include <stdlib.h>
#include <string.h>

struct amqp_queue_node {
  struct amqp_waiting waiting;
  struct amqp_queue_node *next; /* in its lane; of a free one, in the list of these */
  /* Of the first in its lane: */
  struct amqp_queue_node *end;   /* of its lane */
  struct amqp_queue_node *after; /* the first of the lane whose turn comes then */
};

bool amqp_queue_init(struct amqp_queue *queue, uint32_t size) {
  *queue = (struct amqp_queue){.size = size};
  queue->nodes = calloc(size, sizeof *queue->nodes);
  return queue->nodes != NULL;
}

void amqp_queue_free(struct amqp_queue *queue) {
  free(queue->nodes);
  *queue = (struct amqp_queue){0};
}

static bool same_lane(const struct amqp_waiting *a, const struct amqp_waiting *b) {
  return a->suspect == b->suspect && strcmp(a->task->route, b->task->route) == 0;
}

/* The first task of the lane, or NULL. */
static struct amqp_queue_node *find_lane(const struct amqp_queue *queue, const struct amqp_waiting *waiting) {
  struct amqp_queue_node *first = queue->last;
  for (uint32_t i = 0; i < queue->lanes; i++, first = first->after)
    if (same_lane(&first->waiting, waiting))
      return first;
  return NULL;
}

static void append(struct amqp_queue *queue, struct amqp_queue_node *node) {
  struct amqp_queue_node *first = find_lane(queue, &node->waiting);
  node->next = NULL;
  if (first) {
    first->end = first->end->next = node;
    return;
  }
  node->end = node;
  node->after = queue->last ? queue->last->after : node;
  if (queue->last)
    queue->last->after = node;
  queue->last = node;
  queue->lanes++;
}

static void release(struct amqp_queue *queue, struct amqp_queue_node *node) {
  node->next = queue->free;
  queue->free = node;
  queue->count--;
}

bool amqp_queue_put(struct amqp_queue *queue, struct amqp_waiting waiting) {
  struct amqp_queue_node *node = queue->free;
  if (node)
    queue->free = node->next;
  else if (queue->used < queue->size)
    node = &queue->nodes[queue->used++];
  else
    return false;
  node->waiting = waiting;
  queue->count++;
  append(queue, node);
  return true;
}

const struct amqp_waiting *amqp_queue_next(const struct amqp_queue *queue) {
  return queue->last ? &queue->last->after->waiting : NULL;
}

void amqp_queue_take(struct amqp_queue *queue) {
  struct amqp_queue_node *gone = queue->last->after, *heir = gone->next;
  if (heir) {
    heir->end = gone->end;
    heir->after = gone->after == gone ? heir : gone->after;
    queue->last->after = heir;
    queue->last = heir;
  } else {
    queue->last->after = gone->after;
    queue->last = gone->after == gone ? NULL : queue->last;
    queue->lanes--;
  }
  release(queue, gone);
}

void amqp_queue_skip(struct amqp_queue *queue) { queue->last = queue->last->after; }

void amqp_queue_filter(struct amqp_queue *queue, bool (*keep)(void *ctx, const struct amqp_waiting *waiting),
                       void *ctx) {
  if (!queue->last)
    return;
  struct amqp_queue_node *lane = queue->last->after;
  uint32_t lanes = queue->lanes;
  queue->last = NULL;
  queue->lanes = 0;
  for (struct amqp_queue_node *after; lanes > 0; lanes--, lane = after) {
    after = lane->after;
    for (struct amqp_queue_node *node = lane, *next; node; node = next) {
      next = node->next;
      if (keep(ctx, &node->waiting))
        append(queue, node);
      else
        release(queue, node);
    }
  }
}
