/* SPDX-License-Identifier: MIT
 *
 * plugins/kafka/kafka_common.h - the few things every file of this plugin needs.
 */
#ifndef PLUGINS_KAFKA_COMMON_H
#define PLUGINS_KAFKA_COMMON_H

#include <stdint.h>

#include <duebox/plugin.h>

#define MUSTCHECK __attribute__((warn_unused_result))
#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/* Writes the text of a failure; returns false, so that a caller can `return kafka_fail(..)`. err may be NULL. */
bool kafka_fail(struct duebox_error *err, const char *fmt, ...) DUEBOX_PRINTF(2, 3);

/* CLOCK_MONOTONIC in microseconds. */
int64_t kafka_now_us(void);

#endif
