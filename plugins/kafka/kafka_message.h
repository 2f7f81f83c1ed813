/* SPDX-License-Identifier: MIT
 *
 * plugins/kafka/kafka_message.h - the headers of the record a consumer receives. Pure.
 */
#ifndef PLUGINS_KAFKA_MESSAGE_H
#define PLUGINS_KAFKA_MESSAGE_H

#include <librdkafka/rdkafka.h>

#include "kafka_common.h"

#define KAFKA_DUE_SIZE 28 /* "2026-01-02T03:04:05.123456Z" and a NUL */

/* Writes the due time as RFC 3339, UTC, with microseconds. Years 1970 to 9999. */
void kafka_due_text(int64_t due_us, char out[KAFKA_DUE_SIZE]);

/* The application's headers, but for those by which a reply would name another message, then ours. The caller owns the
 * result. */
rd_kafka_headers_t *kafka_headers(const struct duebox_task *task);

#endif
