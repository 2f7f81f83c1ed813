/* SPDX-License-Identifier: MIT
 *
 * plugins/kafka/kafka_correlation.h - which message a result record answers, as its headers say.
 */
#ifndef PLUGINS_KAFKA_CORRELATION_H
#define PLUGINS_KAFKA_CORRELATION_H

#include <stdbool.h>

#include <librdkafka/rdkafka.h>

enum { KAFKA_CORRELATION_CAP = 65 }; /* the longest message id, and its NUL */

/* The message id that the record's headers give, our own sent back or Spring's, in id; NULL = none. The first of these
 * names that is there counts; it names no message where it comes twice and says two things. */
const char *kafka_correlation_of(const rd_kafka_message_t *message, char id[KAFKA_CORRELATION_CAP]);

/* Whether a header of this name, in any case, is one that consumers' frameworks send back and that names a message to
 * us then: in a row it may name its own alone. */
bool kafka_correlates(const char *name);

#endif
