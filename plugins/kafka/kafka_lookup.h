/* SPDX-License-Identifier: MIT
 *
 * plugins/kafka/kafka_lookup.h - whether topics are there and may be used: check_targets() of the plugin.
 *
 * By the metadata that the brokers give to this user. Nothing is written and no topic is created by asking.
 */
#ifndef PLUGINS_KAFKA_LOOKUP_H
#define PLUGINS_KAFKA_LOOKUP_H

#include "kafka_common.h"

void kafka_check_targets(const void *options, struct duebox_check *const *checks, size_t count, int timeout_ms);

#endif
