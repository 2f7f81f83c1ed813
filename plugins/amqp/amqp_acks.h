/* SPDX-License-Identifier: MIT
 *
 * amqp_acks.h - the deliveries of one channel that have not been acknowledged to the broker yet.
 *
 * Deliveries come in the order of their tags; the host decides them in any order. next() turns the decisions into as
 * few frames as possible: one basic.ack with multiple=true for what is decided without a gap from the oldest on, single
 * frames for the rest. An undecided delivery is never covered by an acknowledgement.
 *
 * Pure: no library, no clock, no lock. Belongs to the driver's thread.
 */
#ifndef AMQP_ACKS_H
#define AMQP_ACKS_H

#include <stdbool.h>
#include <stdint.h>

enum amqp_ack_state { AMQP_ACK_OPEN = 0, AMQP_ACK_COMMITTED, AMQP_ACK_REFUSED };

struct amqp_delivery {
  uint64_t tag;
  int64_t at_us; /* when it came */
  enum amqp_ack_state state;
};

/* All zero is empty, and the broker may deliver nothing. */
struct amqp_acks {
  struct amqp_delivery *list; /* in the order of the tags */
  uint32_t count;
  uint32_t limit;   /* the prefetch count of the present subscription: how many of it the broker may deliver */
  uint32_t old;     /* how many, at the front, came by subscriptions before */
  uint32_t late;    /* how many more of those may be on their way */
  uint32_t room;    /* how many the list can hold */
  uint32_t decided; /* how many of them are not OPEN */
};

/* One frame to send. */
struct amqp_ack_frame {
  uint64_t tag;
  bool multiple;
  bool requeue; /* basic.nack with requeue instead of basic.ack */
};

/* Where so many are open no more are asked for: the host sets some thousands aside, and others are to come behind them.
 */
enum { AMQP_ACKS_WIDEST = 8192 };

void amqp_acks_free(struct amqp_acks *acks);

/* Forgets everything: the channel is gone, with its subscriptions, and the broker delivers again. */
void amqp_acks_reset(struct amqp_acks *acks);

/* Another subscription stands in the place of the present one, and the broker may deliver so many by it, whatever is
 * still open of those before; false = no memory, and nothing is changed. */
bool amqp_acks_widen(struct amqp_acks *acks, uint32_t more) __attribute__((warn_unused_result));

/* Notes a delivery, at a time of any clock; false when there are more than its limit or tags do not rise: the broker
 * breaks the protocol. */
bool amqp_acks_add(struct amqp_acks *acks, uint64_t tag, int64_t at_us) __attribute__((warn_unused_result));

/* How many another subscription is to be for, because the broker delivers nothing by this one until one of it is
 * acknowledged, and the oldest has been open for patience_us: as many as there are; 0 = none is wanted. */
uint32_t amqp_acks_want(const struct amqp_acks *acks, int64_t now_us, int64_t patience_us);

/* Notes the host's decision; a tag that is not open is ignored (false). */
bool amqp_acks_decide(struct amqp_acks *acks, uint64_t tag, bool committed);

/* The next frame to send, whose deliveries are forgotten; false when there is nothing to send. */
bool amqp_acks_next(struct amqp_acks *acks, struct amqp_ack_frame *frame);

#endif
