/* SPDX-License-Identifier: MIT
 *
 * amqp_plugin.c - the descriptor of the amqp plugin, and nothing else.
 */
#include <duebox/plugin.h>

#include "amqp_instance.h"
#include "amqp_lookup.h"
#include "amqp_options.h"

extern const struct duebox_plugin duebox_plugin_v1; /* the host finds it by name: no header declares it */

DUEBOX_EXPORT const struct duebox_plugin duebox_plugin_v1 = {
    DUEBOX_PLUGIN_PREFIX,
    .capabilities = DUEBOX_CAP_SINK | DUEBOX_CAP_SOURCE | DUEBOX_CAP_SHARED_LINE,
    .name = "amqp",
    .version = "0.1.0",
    .summary = "AMQP 0-9-1 queues and exchanges (RabbitMQ), with publisher confirms",
    .vendor = "rabbitmq-c " AMQP_VERSION_STRING,
    .options = amqp_option_rows,
    .options_size = sizeof(struct amqp_options),
    .route_options = amqp_route_rows,
    .route_size = sizeof(struct amqp_route),
    .source_options = amqp_source_rows,
    .source_size = sizeof(struct amqp_source_options),
    .instance_size = sizeof(struct amqp_instance),
    .check = amqp_options_check,
    .check_route = amqp_route_check,
    .create = amqp_instance_create,
    .start = amqp_instance_start,
    .poll = amqp_instance_poll,
    .wakeup = amqp_instance_wakeup,
    .close = amqp_instance_close,
    .stop = amqp_instance_stop,
    .destroy = amqp_instance_destroy,
    .sink = &amqp_sink_ops,
    .source = &amqp_source_ops,
    .check_targets = amqp_check_targets,
    .max_checkpoint = amqp_max_checkpoint,
};
