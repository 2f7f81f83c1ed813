/* SPDX-License-Identifier: MIT
 *
 * plugins/kafka/kafka_producer.h - a producer client that comes back after a fatal error.
 *
 * An idempotent producer whose sequence broke refuses everything from then on (librdkafka INTRODUCTION.md, "Idempotent
 * Producer": fatal errors). The way out is a new client: no new messages, purge, wait for the reports of what was open,
 * end the client, start another, at most one in five seconds. Driver thread.
 */
#ifndef PLUGINS_KAFKA_PRODUCER_H
#define PLUGINS_KAFKA_PRODUCER_H

#include "kafka_handle.h"
#include "kafka_health.h"
#include "kafka_topics.h"

struct kafka_producer {
  struct kafka_handle handle;
  struct kafka_topics topics;
  size_t open;       /* messages handed to the client and not reported yet */
  bool fatal;        /* the client is finished; it ends when open is 0 */
  bool missing;      /* there is no client, since librdkafka would not start one when it was tried last */
  int64_t opened_us; /* when the client was started, or tried to be */
  int64_t recreations;
};

MUSTCHECK bool kafka_producer_open(struct kafka_producer *producer, const rd_kafka_conf_t *conf,
                                   const struct kafka_wake *wake, struct duebox_error *err);
/* Ends the client; see kafka_handle_end(). */
bool kafka_producer_close(struct kafka_producer *producer, int timeout_ms);

/* Notes a fatal error: everything open will be reported soon, nothing new may be produced. */
void kafka_producer_break(struct kafka_producer *producer, const struct duebox_host *host);
/* Ends a broken client that has nothing open, and starts one where there is none, when that is allowed again. Returns
 * the milliseconds until it wants to be called again, -1 for no wish. */
int kafka_producer_mend(struct kafka_producer *producer, const rd_kafka_conf_t *conf, const struct kafka_wake *wake,
                        struct kafka_health *health, const struct duebox_host *host);
bool kafka_producer_ready(const struct kafka_producer *producer);

#endif
