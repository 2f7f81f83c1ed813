/* SPDX-License-Identifier: MIT
 *
 * amqp_window.h - the messages of one channel that the broker has not confirmed yet.
 *
 * A list in the order of delivery tags. Tags start at 1 on each channel and count up by one for each publish, in order;
 * confirms come in any order and may stand for all tags up to one (RabbitMQ, "Consumer Acknowledgements and Publisher
 * Confirms"). What is settled is dropped when room is needed, so that a message which waits for long takes no more room
 * than any other. A new channel is a new generation: amqp_window_reset(). Confirms of an older generation cannot come
 * any more, because the closing of the channel was agreed on before it was opened again.
 *
 * Pure: no library, no clock, no lock. Belongs to the driver's thread.
 */
#ifndef AMQP_WINDOW_H
#define AMQP_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <duebox/task.h>

struct amqp_slot {
  const struct duebox_task *task; /* NULL: settled */
  uint64_t tag;
  int64_t sent_us;
};

struct amqp_window {
  struct amqp_slot *slots;
  uint32_t room;       /* of slots */
  uint32_t first, end; /* of those in use; the first one is open */
  uint64_t next;       /* the tag of the next publish */
  uint64_t returned;   /* the tag of the last basic.return: the next one is most likely behind it */
  uint32_t count;      /* open messages */
  int64_t taken_us;    /* when the message that was removed last had been sent */
  uint32_t generation; /* counts the channels, for logs */
};

/* Makes room for `limit` open messages; false = no memory. amqp_window_free() is safe in both cases. */
bool amqp_window_init(struct amqp_window *window, uint32_t limit) __attribute__((warn_unused_result));
void amqp_window_free(struct amqp_window *window);

/* Begins a new generation; the window must be empty. */
void amqp_window_reset(struct amqp_window *window);

/* Takes the next tag for a task; fewer than `limit` messages are open. */
uint64_t amqp_window_add(struct amqp_window *window, const struct duebox_task *task, int64_t now_us);

/* Sets the time of the message added last anew: it is still on its way out, and open. */
void amqp_window_touch(struct amqp_window *window, int64_t now_us);

/* Whether the broker may speak of this tag: it has been used in this generation. */
bool amqp_window_knows(const struct amqp_window *window, uint64_t tag);

/* Removes the task of a tag and returns it; NULL when it is settled already. */
const struct duebox_task *amqp_window_take(struct amqp_window *window, uint64_t tag);

/* Removes the oldest open task whose tag is at most `tag`; NULL when there is none (left). */
const struct duebox_task *amqp_window_take_upto(struct amqp_window *window, uint64_t tag);

/* Removes the task that a basic.return names, whose tag is at most `upto`; NULL when no such open message has this id.
 * The broker returns in the order of the publishes, so the search begins behind the last one returned. */
const struct duebox_task *amqp_window_take_returned(struct amqp_window *window, uint64_t upto, const void *message_id,
                                                    size_t len);

/* The oldest open message; NULL when there is none. */
const struct amqp_slot *amqp_window_oldest(const struct amqp_window *window);

#endif
