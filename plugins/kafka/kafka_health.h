/* SPDX-License-Identifier: MIT
 *
 * plugins/kafka/kafka_health.h - says up and down to the host, once per change.
 *
 * Two kinds of trouble: the cluster is away (ends with any connection), or it answers and refuses us (ends only with a
 * success); a source that it refuses is unread. A login that is refused is of the first kind, and leaves a source
 * unread too. librdkafka's error events are hints about the connection; what became of a task is told by its report.
 */
#ifndef PLUGINS_KAFKA_HEALTH_H
#define PLUGINS_KAFKA_HEALTH_H

#include <librdkafka/rdkafka.h>

#include "kafka_common.h"

enum kafka_health_state { KAFKA_HEALTH_UNKNOWN = 0, KAFKA_HEALTH_UP, KAFKA_HEALTH_AWAY, KAFKA_HEALTH_REFUSED };

struct kafka_health {
  enum kafka_health_state state;
  bool of_source;
  bool strayed;       /* said */
  int64_t refused_us; /* of a source that is away: when its login was refused last; 0 = it was not */
  const char *word;   /* what was said last while it is down */
};

/* Brokers have answered since they were away last, be it with a refusal. */
bool kafka_health_reached(const struct kafka_health *health);
/* A message was acknowledged or a record came. */
void kafka_health_success(struct kafka_health *health, const struct duebox_host *host);
/* A broker is connected. */
void kafka_health_connected(struct kafka_health *health, const struct duebox_host *host);
/* librdkafka starts no client: what it is given to start with, files for TLS mostly, is not in order. */
void kafka_health_no_client(struct kafka_health *health, const struct duebox_host *host, const char *text);
/* A connection would have left this machine without TLS. Said once. */
void kafka_health_strayed(struct kafka_health *health, const struct duebox_host *host);
/* The cluster answers, and a source's records are not read. Whatever else it is refused for is the better reason. */
void kafka_health_unread(struct kafka_health *health, const struct duebox_host *host, const char *word,
                         const char *text, const char *cure);
/* Takes an error event; returns true when it is fatal: the client is finished. */
bool kafka_health_error(struct kafka_health *health, const struct duebox_host *host, rd_kafka_event_t *event);

#endif
