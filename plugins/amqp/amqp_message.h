/* SPDX-License-Identifier: MIT
 *
 * amqp_message.h - a task as AMQP properties and headers.
 *
 * What a consumer finds where is a fixed contract: properties message_id, correlation_id (the same id), reply_to,
 * content_type, delivery_mode, priority, timestamp (seconds), app_id; headers duebox-attempt, duebox-revision,
 * duebox-route, duebox-due, duebox-checkpoint and the application's own, all as long strings: a byte array would reach
 * Python consumers as bytes. The body is not touched here or anywhere.
 *
 * Nothing is copied: the made message points into the task and lives as long as the task and the builder. A builder
 * serves one message at a time. Pure; belongs to the driver's thread.
 */
#ifndef AMQP_MESSAGE_H
#define AMQP_MESSAGE_H

#include <stdbool.h>
#include <stdint.h>

#include <duebox/plugin.h>
#include <duebox/task.h>

#include "amqp_options.h"
#include "amqp_outcome.h"
#include "amqp_vendor.h"

enum { AMQP_MESSAGE_KEY = 256 }; /* room for a routing key */

struct amqp_message {
  amqp_basic_properties_t properties;
  size_t head_size; /* upper bound of the encoded properties, bytes */

  amqp_table_entry_t *entries;
  int capacity;
  char attempt[16];
  char revision[16];
  char due[40];
};

/* Fills message->properties from a task. wall_us: now, since 1970. Returns 0, an enum amqp_invalid when the protocol
 * cannot carry the task, or -1 without memory. */
int amqp_message_build(struct amqp_message *message, const struct duebox_task *task, const struct amqp_route *route,
                       int64_t wall_us, size_t frame_max);

/* The routing key of a task: the route's, or in `room`. NULL when AMQP has none such, and *invalid is the enum
 * amqp_invalid; else that is 0. */
const char *amqp_message_key(const struct duebox_host *host, const struct duebox_task *task,
                             const struct amqp_route *route, char room[AMQP_MESSAGE_KEY], int *invalid);

void amqp_message_free(struct amqp_message *message);

/* Writes microseconds since 1970 as "2026-01-02T03:04:05.123456Z" (RFC 3339). */
void amqp_message_time(int64_t time_us, char *out, size_t cap);

#endif
