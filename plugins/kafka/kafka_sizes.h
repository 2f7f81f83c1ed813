/* SPDX-License-Identifier: MIT
 *
 * plugins/kafka/kafka_sizes.h - how large a message may be, as the brokers and the operator's settings have it.
 *
 * For check_targets(): a task that is larger than its topic takes is found out only when it is sent, and dead then.
 */
#ifndef PLUGINS_KAFKA_SIZES_H
#define PLUGINS_KAFKA_SIZES_H

#include <librdkafka/rdkafka.h>

#include "kafka_common.h"
#include "kafka_options.h"

/* Bytes that the options' own message.max.bytes allows; -1 = they do not say, and there is room for any payload. */
int64_t kafka_producer_max(const struct kafka_options *options);

/* Asks the brokers for max.message.bytes of a topic, for timeout_ms at most. -1 = they do not tell: this user has no
 * right to DESCRIBE_CONFIGS, say. */
int64_t kafka_topic_max(rd_kafka_t *rk, const char *topic, int timeout_ms);

/* Turns the answer of a check, which is OK so far, into a doubt where a limit is below the largest payload. topic: its
 * name; topic_max: -1 = not known. */
void kafka_judge_sizes(struct duebox_check *check, const char *topic, int64_t producer_max, int64_t topic_max);

#endif
