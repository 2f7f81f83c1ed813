/* SPDX-License-Identifier: MIT
 *
 * amqp_pub.h - one publishing channel: opened, put into confirm mode, written to, listened to, reopened.
 *
 * Every message is published with mandatory=1. A basic.return comes before the basic.ack of the same message and
 * decides it; the ack then finds nothing. A message larger than the room in the socket goes out in pieces over several
 * polls, in place from the task's payload; nothing else goes onto this channel meanwhile.
 *
 * Knows tasks and tags, not what an event means for a task (amqp_outcome.h) and not which message goes where
 * (amqp_sink.c). Driver's thread; no lock.
 */
#ifndef AMQP_PUB_H
#define AMQP_PUB_H

#include <stdbool.h>
#include <stdint.h>

#include "amqp_conn.h"
#include "amqp_message.h"
#include "amqp_outcome.h"
#include "amqp_window.h"

enum amqp_pub_state {
  AMQP_PUB_CLOSED = 0,
  AMQP_PUB_OPENING,   /* channel.open sent */
  AMQP_PUB_SELECTING, /* confirm.select sent */
  AMQP_PUB_READY,
  AMQP_PUB_CLOSING, /* channel.close sent; nothing that comes before the answer counts */
};

struct amqp_pub;

struct amqp_pub_user {
  void (*ready)(void *ctx, struct amqp_pub *pub);
  /* The broker has decided this message; it is no longer in the window. detail may be NULL. */
  void (*decided)(void *ctx, struct amqp_pub *pub, const struct duebox_task *task, enum amqp_event event, int code,
                  const char *detail);
  /* The broker has closed the channel. The user empties the window and opens it again. */
  void (*closed)(void *ctx, struct amqp_pub *pub, int code, const char *text);
};

struct amqp_pub {
  struct amqp_conn *conn;
  const struct amqp_pub_user *user;
  void *ctx;
  amqp_channel_t number;
  enum amqp_pub_state state;
  int64_t answer_by_us; /* OPENING, SELECTING, CLOSING: when the broker must have answered */
  int64_t heard_us;     /* when a confirm came last, or the channel became ready; 0 = not on this connection */
  int64_t behind_us;    /* when a message last was confirmed, on any channel, that left no later than its oldest */

  struct amqp_window window;
  uint32_t limit; /* how many messages may be open */

  const struct duebox_task *writing; /* in the window, and not wholly sent */
  size_t written;
  uint64_t recalled_upto; /* the tag of the last message that the host has taken back since; 0 = none was */

  bool returning; /* a basic.return came, and its content header comes next */
  int return_code;
  char return_text[640];
};

/* limit: how many messages may be open at once. false = no memory; amqp_pub_free() is safe. */
bool amqp_pub_init(struct amqp_pub *pub, struct amqp_conn *conn, amqp_channel_t number, uint32_t limit,
                   const struct amqp_pub_user *user, void *ctx) __attribute__((warn_unused_result));
void amqp_pub_free(struct amqp_pub *pub);

/* Opens the channel, with an empty window, as a new generation. */
void amqp_pub_open(struct amqp_pub *pub);
/* Closes it, because it does not confirm any more; it opens again when the broker agrees. The window must be empty. */
void amqp_pub_give_up(struct amqp_pub *pub);
/* Forgets it: the connection is gone. The window must be empty. */
void amqp_pub_lost(struct amqp_pub *pub);

/* Whether another message may be published now, room in the socket apart. */
bool amqp_pub_can_take(const struct amqp_pub *pub);

/* Whether the broker has to answer before anything can go on; it should by answer_by_us. */
bool amqp_pub_waits(const struct amqp_pub *pub);

/* Publishes a task; false = no room in the socket, nothing was done. Once true, the task is in the window. */
bool amqp_pub_publish(struct amqp_pub *pub, const struct amqp_message *message, const struct duebox_task *task,
                      const char *exchange, const char *routing_key, int64_t now_us);

/* Sends what is left of the message being written, as far as there is room. */
void amqp_pub_continue(struct amqp_pub *pub, int64_t now_us);

/* What is in the window is not to be sent a second time. */
void amqp_pub_recall(struct amqp_pub *pub);

void amqp_pub_frame(struct amqp_pub *pub, const amqp_frame_t *frame);

#endif
