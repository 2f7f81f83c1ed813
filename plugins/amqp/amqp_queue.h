/* SPDX-License-Identifier: MIT
 *
 * amqp_queue.h - the tasks that wait for a probe channel, in lanes that take turns.
 *
 * A lane holds what waits of one route and of one kind, suspects or fresh ones, in order. One message of each lane goes
 * in a round, so that thousands of suspects of one route cost another route one turn, not all of theirs.
 *
 * Pure: no library, no clock, no lock. Belongs to the driver's thread.
 */
#ifndef AMQP_QUEUE_H
#define AMQP_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include <duebox/task.h>

/* A task that waits for a probe channel. */
struct amqp_waiting {
  const struct duebox_task *task;
  bool suspect; /* it was open when a channel broke, so the broker may have it already; else nothing of it is sent */
  bool ended;   /* a connection ended while it was alone on it */
  int64_t since_us; /* monotonic: when it came to the connection apart */
};

struct amqp_queue_node;

struct amqp_queue {
  struct amqp_queue_node *nodes;
  struct amqp_queue_node *free;
  struct amqp_queue_node *last; /* first task of the lane whose turn comes last; the lanes are a ring */
  uint32_t size;
  uint32_t used; /* of the nodes: those behind were never in use */
  uint32_t count;
  uint32_t lanes;
};

/* Makes room for `size` tasks; false = no memory. amqp_queue_free() is safe in both cases. */
bool amqp_queue_init(struct amqp_queue *queue, uint32_t size) __attribute__((warn_unused_result));
void amqp_queue_free(struct amqp_queue *queue);

/* Puts a task at the end of its lane, and a new lane at the end of the round; false = full. */
bool amqp_queue_put(struct amqp_queue *queue, struct amqp_waiting waiting);

/* The first task of the lane whose turn it is; NULL when nothing waits. */
const struct amqp_waiting *amqp_queue_next(const struct amqp_queue *queue);
/* It has gone: removes it. Its lane had its turn. */
void amqp_queue_take(struct amqp_queue *queue);
/* It cannot go now: its lane gives its turn away. */
void amqp_queue_skip(struct amqp_queue *queue);

/* Shows all tasks to keep() and removes those for which it returns false. The order stays. */
void amqp_queue_filter(struct amqp_queue *queue, bool (*keep)(void *ctx, const struct amqp_waiting *waiting),
                       void *ctx);

#endif
