/* SPDX-License-Identifier: MIT
 *
 * plugins/kafka/kafka_handle.h - one librdkafka client and its event queue, and the descriptor that poll() sleeps on.
 *
 * Everything librdkafka has to say (delivery reports, records, errors, log lines) comes as an event out of one queue,
 * served on the driver thread; there are no callbacks. The queue and wakeup() write to the same eventfd, so that
 * poll() sleeps in one place and a wake-up cannot be lost, whether a client exists at the moment or not.
 */
#ifndef PLUGINS_KAFKA_HANDLE_H
#define PLUGINS_KAFKA_HANDLE_H

#include <librdkafka/rdkafka.h>
#include <stdatomic.h>

#include "kafka_common.h"

struct kafka_wake {
  int fd; /* eventfd; -1 = none */
};

MUSTCHECK bool kafka_wake_open(struct kafka_wake *wake, struct duebox_error *err);
void kafka_wake_close(struct kafka_wake *wake);
void kafka_wake_signal(const struct kafka_wake *wake); /* any thread */
/* Sleeps until signalled or for timeout_ms (0 = not at all), and takes the signal back. True when there was one. */
bool kafka_wake_wait(const struct kafka_wake *wake, int timeout_ms);

struct kafka_handle {
  rd_kafka_t *rk; /* NULL = closed */
  rd_kafka_queue_t *queue;
  atomic_bool *strayed; /* kafka_conf.h; it lives as long as the client's threads */
};

/* Starts a client from a copy of conf. False with err when librdkafka refuses, e.g. for a CA file it cannot read. */
MUSTCHECK bool kafka_handle_open(struct kafka_handle *handle, rd_kafka_type_t type, const rd_kafka_conf_t *conf,
                                 const struct kafka_wake *wake, struct duebox_error *err);
/* Ends the client and all its threads; what it still held is gone without a report. A thread of its own does it, which
 * touches nothing but the client: librdkafka waits in there for an unanswered commit as long as the session lasts
 * (45 s), and for ever after a consumer's topic was deleted (seen with 2.0.2). Waits timeout_ms for it at most; false
 * when that was not enough. Safe on a closed handle. */
bool kafka_handle_end(struct kafka_handle *handle, int timeout_ms);

/* Whether a connection was refused since the last time, because it would leave this machine without TLS. */
bool kafka_handle_strayed(struct kafka_handle *handle);

/* Writes one log event to the host's log. */
void kafka_log_event(const struct duebox_host *host, rd_kafka_event_t *event);
/* True when a statistics event shows a broker that is connected. */
bool kafka_stats_connected(rd_kafka_event_t *event);

#endif
