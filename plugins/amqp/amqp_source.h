/* SPDX-License-Identifier: MIT
 *
 * amqp_source.h - an instance that reads result records from a queue.
 *
 * A record is acknowledged to the broker only after the table has committed it; until then the broker keeps it and
 * delivers it again to whoever comes next. One larger than max_record is known from its content header before its body
 * is read: its first bytes are kept and the rest is thrown away as it comes. When the host is full, nothing more is
 * read from the socket; heartbeats and acknowledgements go on.
 *
 * One source reads a queue at a time, or records about one task would be applied by two daemons in an order that is
 * nobody's. So it asks how many consumers the queue has (queue.declare, passive), and subscribes where there is none,
 * exclusively: classic queues let nobody else in then. A queue with a single active consumer refuses that, and is read
 * without; a quorum queue ignores it, so the source asks once more when it has subscribed, and gives way where another
 * one came at the same moment. Otherwise it stands by, and asks again every second.
 *
 * The broker delivers `prefetch` records and waits for acknowledgements. Where the host has set all of them aside,
 * since somebody holds the rows of their tasks, it would wait for as long as that lasts, and with it all other results
 * of the queue. So the source then puts another subscription in the place of its own, for as many again: each has a
 * prefetch count of its own, and what was delivered before stays unacknowledged on the channel.
 *
 * A message whose content header rabbitmq-c cannot decode (larger than a frame may be, or malformed) would come again
 * on every new connection, first of all. The library reads nothing behind it, but what is sent still arrives: so the
 * message is handed to the host as one that cannot be read, and when it is acknowledged the connection is made anew.
 * What was delivered behind it is delivered again, which queues with a delivery limit count. So one record is asked for
 * after that, and twice as many whenever all of them have been read.
 *
 * A queue that is missing, deleted or moved, and a consumer that the broker cancels, are tried again with back-off.
 *
 * Driver's thread; no lock.
 */
#ifndef AMQP_SOURCE_H
#define AMQP_SOURCE_H

#include "amqp_acks.h"
#include "amqp_conn.h"
#include "amqp_options.h"

enum amqp_source_state {
  AMQP_SOURCE_CLOSED = 0,  /* no channel: the connection is away, or retry_at_us is still to come */
  AMQP_SOURCE_OPENING,     /* channel.open sent */
  AMQP_SOURCE_ASKING,      /* queue.declare sent */
  AMQP_SOURCE_STANDING_BY, /* somebody else reads the queue; asked again at retry_at_us */
  AMQP_SOURCE_LIMITING,    /* basic.qos sent */
  AMQP_SOURCE_SUBSCRIBING, /* basic.consume sent */
  AMQP_SOURCE_READING,
  AMQP_SOURCE_SETTLING, /* a message cannot be read, and nothing behind it; waits for what the host makes of it */
  AMQP_SOURCE_CLOSING,  /* channel.close sent */
};

struct amqp_source {
  struct amqp_conn conn;
  const struct duebox_host *host;
  const struct amqp_source_options *options;
  enum amqp_source_state state;
  int64_t answer_by_us; /* when the broker must have answered */
  int64_t retry_at_us;  /* CLOSED on a connection that is up: when to open a channel again; STANDING_BY: when to ask */
  int64_t backoff_us;
  uint64_t random;
  unsigned subscription; /* number of the present one, in its tag */
  bool subscribed;       /* on this channel */
  bool shareable;        /* it refuses exclusive reading although nobody reads it: a single active consumer */
  bool verifying;        /* READING: asked how many do */
  bool yielded;          /* nothing is read until the host resumes */
  bool said_standing_by; /* the log has it */

  struct amqp_acks acks;
  uint32_t wanted;     /* deliveries, by the basic.qos that was sent last */
  uint32_t read;       /* records of the present subscription */
  uint32_t depth;      /* how many to want, unless more are stuck: the prefetch, or fewer for a while */
  uint16_t generation; /* of the channel; part of each cookie */

  /* The record that is being read, or that the host had no room for. */
  uint64_t tag;
  uint64_t unreadable; /* SETTLING: the tag of the message, until the host has decided; 0 = it has */
  char *body;
  size_t capacity;
  size_t max_record;
  size_t kept;     /* bytes in body */
  size_t missing;  /* bytes still to come from the broker */
  size_t full_len; /* as the broker holds it */
  bool has_header; /* its content header has come */
  bool waiting;    /* whole, and the host is full */
  bool closed;     /* reads no more */
  char origin[300];
  char correlation_id[65]; /* "" = none */
};

bool amqp_source_create(struct amqp_source *source, const struct duebox_instance_config *config,
                        const struct duebox_host *host, struct duebox_error *err);
void amqp_source_poll(struct amqp_source *source, int timeout_ms);
void amqp_source_ack(struct amqp_source *source, uint64_t cookie, bool committed);
/* Gives back what is not acknowledged, and reads nothing until resume. */
void amqp_source_yield(struct amqp_source *source);
void amqp_source_resume(struct amqp_source *source);
void amqp_source_close(struct amqp_source *source);
void amqp_source_stop(struct amqp_source *source, int deadline_ms);
void amqp_source_destroy(struct amqp_source *source);

#endif
