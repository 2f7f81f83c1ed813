/* SPDX-License-Identifier: MIT
 *
 * amqp_sink.h - an instance that publishes tasks: which channel a message takes, and what its end means.
 *
 * A channel error in AMQP leaves everything that is unconfirmed on the channel undecided, and does not say which
 * message caused it. So there are several channels on the one connection. Each route has one of `flows`, which carries
 * its window of thousands, but only what is believed to be harmless: messages to an exchange that has already decided
 * one on this connection, neither as large as one that was refused for itself nor on a way that was. Each of `probes`
 * carries one message at a time: what is not believed, and the suspects: those that were open when a channel broke. An
 * error there names its message, and changes what is believed of its own way only. Suspects stay open meanwhile and are
 * sent a second time, so they cost their task no failure; one that was in its queue already is there twice. A route has
 * one message on the probe channels at most, and routes take turns, fresh tasks with suspects (amqp_queue.h): what one
 * route does costs another a few duplicates and a turn, also where its queue confirms nothing.
 *
 * A channel is also what RabbitMQ works off in order: behind an exchange that is slow, only its own route waits. The
 * host sees to it that a slow route has few messages out (DUEBOX_CAP_SHARED_LINE), so that they do not keep the broker
 * from reading. Until a route's channel is open its messages go as those do that are not believed. Where the broker
 * permits fewer channels than there are routes, some share one.
 *
 * Driver's thread; no lock. See amqp_outcome.h for the outcomes.
 */
#ifndef AMQP_SINK_H
#define AMQP_SINK_H

#include "amqp_apart.h"
#include "amqp_conn.h"
#include "amqp_message.h"
#include "amqp_pub.h"
#include "amqp_queue.h"
#include "amqp_set.h"

enum { AMQP_PROBES = 4, AMQP_FLOWS = 256 };

struct amqp_flow {
  struct amqp_pub pub;
  uint64_t route; /* its key, as in `refused`; 0 = none yet */
};

struct amqp_probe {
  struct amqp_pub pub;
  bool suspect; /* whether the message on it is one */
};

struct amqp_sink {
  struct amqp_conn conn;
  const struct duebox_host *host;
  struct amqp_flow
      flows[AMQP_FLOWS]; /* the first is opened with the connection, the others with their route's first task */
  uint32_t flow_count;
  uint32_t most_flows; /* that the broker permits */
  uint32_t inflight;
  bool ready; /* the first one has been, on this connection */
  struct amqp_probe probes[AMQP_PROBES];
  struct amqp_set safe;         /* exchanges that decided a message on this connection */
  struct amqp_set refused;      /* routes whose exchange was refused */
  struct amqp_set refused_keys; /* routing keys that were refused, each with its exchange */
  size_t too_large;             /* a payload of this size was refused for itself; SIZE_MAX = none */
  struct amqp_message message;
  char routing_key[AMQP_MESSAGE_KEY];

  struct amqp_apart apart; /* another connection, for what may end one */
  struct amqp_queue queue; /* for the probe channels, with room for every task that may be open */

  int64_t confirm_timeout_us;
  int64_t unblocked_us; /* when the last alarm of the broker ended */
  int64_t worked_us;    /* since the last poll: when the oldest message that the broker decided had been sent */
  bool closed;
};

bool amqp_sink_create(struct amqp_sink *sink, const struct duebox_instance_config *config,
                      const struct duebox_host *host, struct duebox_error *err);
size_t amqp_sink_submit(struct amqp_sink *sink, const struct duebox_task *const *tasks, size_t n);
/* What waits in the queue is handed back; what has begun to leave goes on, and is not sent a second time. */
void amqp_sink_recall(struct amqp_sink *sink);
void amqp_sink_poll(struct amqp_sink *sink, int timeout_ms);
void amqp_sink_stop(struct amqp_sink *sink, int deadline_ms);
void amqp_sink_destroy(struct amqp_sink *sink);

#endif
