/* SPDX-License-Identifier: MIT
 *
 * plugins/kafka/kafka_conf.h - from our options to librdkafka's configuration object.
 *
 * No I/O: certificates are read when a handle is made. The opaque of a client is an atomic_bool, which becomes true
 * when a connection was refused because it would leave this machine without TLS; NULL where nobody asks.
 */
#ifndef PLUGINS_KAFKA_CONF_H
#define PLUGINS_KAFKA_CONF_H

#include <librdkafka/rdkafka.h>
#include <sys/socket.h>

#include "kafka_options.h"

/* What the host says about the instance. */
struct kafka_limits {
  const char *name;
  int64_t max_payload;
  uint32_t max_inflight;
  const char *outbox; /* NULL: not known */
};

/* NULL with err on a property that librdkafka or we refuse. The caller owns the result (rd_kafka_conf_destroy). */
MUSTCHECK rd_kafka_conf_t *kafka_conf_producer(const struct kafka_options *options, const struct kafka_limits *limits,
                                               struct duebox_error *err);
MUSTCHECK rd_kafka_conf_t *kafka_conf_consumer(const struct kafka_options *options, const char *group,
                                               const struct kafka_limits *limits, struct duebox_error *err);

/* Whether an address is this machine: 127.0.0.0/8, ::1. */
bool kafka_address_local(const struct sockaddr *addr);

/* check() of the plugin: both configurations can be built. */
MUSTCHECK bool kafka_check(const void *options, struct duebox_error *err);

#endif
