/* SPDX-License-Identifier: MIT
 *
 * amqp_instance.h - the operations of the plugin ABI, handed on to the sink or the source that an instance is.
 *
 * Threads as in duebox/plugin.h: create and destroy on the main thread, wakeup on any, everything else on the driver.
 */
#ifndef AMQP_INSTANCE_H
#define AMQP_INSTANCE_H

#include "amqp_sink.h"
#include "amqp_source.h"

struct amqp_instance {
  enum duebox_role role; /* 0 until created */
  union {
    struct amqp_conn conn; /* first member of both */
    struct amqp_sink sink;
    struct amqp_source source;
  };
};

bool amqp_instance_create(void *inst, const struct duebox_instance_config *config, const struct duebox_host *host,
                          struct duebox_error *err);
bool amqp_instance_start(void *inst, struct duebox_error *err);
void amqp_instance_poll(void *inst, int timeout_ms);
void amqp_instance_wakeup(void *inst);
void amqp_instance_close(void *inst);
void amqp_instance_stop(void *inst, int deadline_ms);
void amqp_instance_destroy(void *inst);

extern const struct duebox_sink_ops amqp_sink_ops;
extern const struct duebox_source_ops amqp_source_ops;

#endif
