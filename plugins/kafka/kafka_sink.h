/* SPDX-License-Identifier: MIT
 *
 * plugins/kafka/kafka_sink.h - tasks out: one idempotent producer, one delivery report per task.
 *
 * Driver thread. A task's payload is sent in place; the task belongs to a slot from submit() to its report, so that
 * whatever happens to the client, stop() can complete every task that was accepted, once.
 */
#ifndef PLUGINS_KAFKA_SINK_H
#define PLUGINS_KAFKA_SINK_H

#include "kafka_conf.h"
#include "kafka_health.h"
#include "kafka_producer.h"
#include "kafka_throttle.h"

struct kafka_slot {
  const struct duebox_task *task; /* NULL = free */
  struct kafka_slot *next;        /* free list */
  bool alone;                     /* sent a second time, in a batch of its own */
  bool recalled;                  /* the host has taken it back: it is not sent (again) */
};

struct kafka_sink {
  const struct duebox_host *host;
  const struct kafka_options *options;
  const struct kafka_wake *wake;
  rd_kafka_conf_t *conf;       /* of the main producer */
  rd_kafka_conf_t *alone_conf; /* of the one that sends one message per batch */
  struct kafka_producer main;
  struct kafka_producer alone; /* started when a broker refuses a batch of several messages */
  struct kafka_slot *slots;
  uint32_t slot_count;
  struct kafka_slot *free_slots;
  struct kafka_health health;
  struct kafka_throttle throttle;
  bool closed;   /* no new work */
  bool stopping; /* nothing is sent any more */
  char *key;     /* room for expanded keys */
  size_t key_cap;
};

MUSTCHECK bool kafka_sink_create(struct kafka_sink *sink, const struct duebox_instance_config *config,
                                 const struct duebox_host *host, const struct kafka_wake *wake,
                                 struct duebox_error *err);
void kafka_sink_start(struct kafka_sink *sink);
size_t kafka_sink_submit(struct kafka_sink *sink, const struct duebox_task *const *tasks, size_t n);
void kafka_sink_recall(struct kafka_sink *sink);
void kafka_sink_poll(struct kafka_sink *sink, int timeout_ms);
void kafka_sink_close(struct kafka_sink *sink);
void kafka_sink_stop(struct kafka_sink *sink, int deadline_ms);
void kafka_sink_destroy(struct kafka_sink *sink);

#endif
