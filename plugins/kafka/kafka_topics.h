/* SPDX-License-Identifier: MIT
 *
 * plugins/kafka/kafka_topics.h - topic name to librdkafka's topic object, remembered.
 *
 * librdkafka looks a topic up by walking a list under a lock; a producer of many messages must not do that for each.
 * Belongs to one client and ends before it. Driver thread.
 */
#ifndef PLUGINS_KAFKA_TOPICS_H
#define PLUGINS_KAFKA_TOPICS_H

#include <librdkafka/rdkafka.h>

#include "kafka_common.h"

#define KAFKA_TOPICS_SLOTS 512 /* a power of two; when it is three quarters full, all is forgotten and learnt anew */

struct kafka_topics {
  rd_kafka_topic_t *slots[KAFKA_TOPICS_SLOTS];
  size_t count;
};

/* NULL when librdkafka refuses the name. The result belongs to the table and is valid until the next call. */
rd_kafka_topic_t *kafka_topics_get(struct kafka_topics *topics, rd_kafka_t *rk, const char *name);
void kafka_topics_clear(struct kafka_topics *topics);

#endif
