/* SPDX-License-Identifier: MIT */
#include "amqp_instance.h"

bool amqp_instance_create(void *inst, const struct duebox_instance_config *config, const struct duebox_host *host,
                          struct duebox_error *err) {
  struct amqp_instance *instance = inst;
  instance->role = config->role;
  if (config->role == DUEBOX_ROLE_SOURCE)
    return amqp_source_create(&instance->source, config, host, err);
  return amqp_sink_create(&instance->sink, config, host, err);
}

bool amqp_instance_start(void *inst, struct duebox_error *err) {
  struct amqp_instance *instance = inst;
  (void)err; /* "not yet connected" is success */
  amqp_conn_start(&instance->conn);
  return true;
}

void amqp_instance_poll(void *inst, int timeout_ms) {
  struct amqp_instance *instance = inst;
  if (instance->role == DUEBOX_ROLE_SOURCE)
    amqp_source_poll(&instance->source, timeout_ms);
  else
    amqp_sink_poll(&instance->sink, timeout_ms);
}

void amqp_instance_wakeup(void *inst) {
  struct amqp_instance *instance = inst;
  amqp_conn_wakeup(&instance->conn);
  if (instance->role == DUEBOX_ROLE_SINK)
    amqp_conn_wakeup(&instance->sink.apart.conn);
}

void amqp_instance_close(void *inst) {
  struct amqp_instance *instance = inst;
  if (instance->role == DUEBOX_ROLE_SOURCE)
    amqp_source_close(&instance->source);
  else
    instance->sink.closed = true;
}

void amqp_instance_stop(void *inst, int deadline_ms) {
  struct amqp_instance *instance = inst;
  if (instance->role == DUEBOX_ROLE_SOURCE)
    amqp_source_stop(&instance->source, deadline_ms);
  else
    amqp_sink_stop(&instance->sink, deadline_ms);
}

void amqp_instance_destroy(void *inst) {
  struct amqp_instance *instance = inst;
  if (instance->role == DUEBOX_ROLE_SOURCE)
    amqp_source_destroy(&instance->source);
  else
    amqp_sink_destroy(&instance->sink);
}

static size_t submit(void *inst, const struct duebox_task *const *tasks, size_t n) {
  struct amqp_instance *instance = inst;
  return amqp_sink_submit(&instance->sink, tasks, n);
}

static void recall(void *inst) {
  struct amqp_instance *instance = inst;
  amqp_sink_recall(&instance->sink);
}

static void ack(void *inst, uint64_t cookie, bool committed) {
  struct amqp_instance *instance = inst;
  amqp_source_ack(&instance->source, cookie, committed);
}

static void resume(void *inst) {
  struct amqp_instance *instance = inst;
  amqp_source_resume(&instance->source);
}

const struct duebox_sink_ops amqp_sink_ops = {.struct_size = sizeof amqp_sink_ops, .submit = submit, .recall = recall};
static void yield(void *inst) {
  struct amqp_instance *instance = inst;
  amqp_source_yield(&instance->source);
}

const struct duebox_source_ops amqp_source_ops = {
    .struct_size = sizeof amqp_source_ops, .ack = ack, .resume = resume, .yield = yield};
