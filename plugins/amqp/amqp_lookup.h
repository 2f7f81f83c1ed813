/* SPDX-License-Identifier: MIT
 *
 * amqp_lookup.h - whether exchanges and queues are there and may be used: check_targets() of the plugin.
 *
 * By passive declarations, which create nothing, on a connection of its own.
 */
#ifndef AMQP_LOOKUP_H
#define AMQP_LOOKUP_H

#include <duebox/plugin.h>

void amqp_check_targets(const void *options, struct duebox_check *const *checks, size_t count, int timeout_ms);

#endif
