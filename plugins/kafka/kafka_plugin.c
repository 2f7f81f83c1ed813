/* SPDX-License-Identifier: MIT
 *
 * plugins/kafka/kafka_plugin.c - the descriptor, and nothing else but choosing between sink and source.
 */
#include <librdkafka/rdkafka.h>

#include "kafka_lookup.h"
#include "kafka_sink.h"
#include "kafka_source.h"

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)

struct kafka_instance {
  enum duebox_role role;
  struct kafka_wake wake;
  union {
    struct kafka_sink sink;
    struct kafka_source source;
  } as;
};

static void warn_of_cleartext(const struct kafka_options *options, const struct duebox_host *host) {
  if (options->username && options->sasl == KAFKA_SASL_PLAIN && !options->tls)
    host->log(host->ctx, DUEBOX_LOG_WARN, "KAFKA-CLEARTEXT",
              "the password goes over the network in clear text: set tls: true, or sasl: scram-sha-512");
}

static bool create(void *inst, const struct duebox_instance_config *config, const struct duebox_host *host,
                   struct duebox_error *err) {
  struct kafka_instance *kafka = inst;
  kafka->role = config->role;
  warn_of_cleartext(config->options, host);
  if (!kafka_wake_open(&kafka->wake, err))
    return false;
  return kafka->role == DUEBOX_ROLE_SINK ? kafka_sink_create(&kafka->as.sink, config, host, &kafka->wake, err)
                                         : kafka_source_create(&kafka->as.source, config, host, &kafka->wake, err);
}

static bool start(void *inst, struct duebox_error *err) {
  struct kafka_instance *kafka = inst;
  (void)err; /* a client that does not start is tried again, like a broker that is away */
  if (kafka->role == DUEBOX_ROLE_SINK)
    kafka_sink_start(&kafka->as.sink);
  else
    kafka_source_start(&kafka->as.source);
  return true;
}

static void poll_instance(void *inst, int timeout_ms) {
  struct kafka_instance *kafka = inst;
  if (kafka->role == DUEBOX_ROLE_SINK)
    kafka_sink_poll(&kafka->as.sink, timeout_ms);
  else
    kafka_source_poll(&kafka->as.source, timeout_ms);
}

static void wakeup(void *inst) {
  struct kafka_instance *kafka = inst;
  kafka_wake_signal(&kafka->wake);
}

static void close_instance(void *inst) {
  struct kafka_instance *kafka = inst;
  if (kafka->role == DUEBOX_ROLE_SINK)
    kafka_sink_close(&kafka->as.sink);
  else
    kafka_source_close(&kafka->as.source);
}

static void stop(void *inst, int deadline_ms) {
  struct kafka_instance *kafka = inst;
  if (kafka->role == DUEBOX_ROLE_SINK)
    kafka_sink_stop(&kafka->as.sink, deadline_ms);
  else
    kafka_source_stop(&kafka->as.source, deadline_ms);
}

static void destroy(void *inst) {
  struct kafka_instance *kafka = inst;
  if (kafka->role == DUEBOX_ROLE_SINK)
    kafka_sink_destroy(&kafka->as.sink);
  else
    kafka_source_destroy(&kafka->as.source);
  kafka_wake_close(&kafka->wake);
}

static size_t submit(void *inst, const struct duebox_task *const *tasks, size_t n) {
  struct kafka_instance *kafka = inst;
  return kafka_sink_submit(&kafka->as.sink, tasks, n);
}

static void recall(void *inst) {
  struct kafka_instance *kafka = inst;
  kafka_sink_recall(&kafka->as.sink);
}

static void ack(void *inst, uint64_t cookie, bool committed) {
  struct kafka_instance *kafka = inst;
  kafka_source_ack(&kafka->as.source, cookie, committed);
}

static void resume(void *inst) {
  struct kafka_instance *kafka = inst;
  kafka_source_resume(&kafka->as.source);
}

static const struct duebox_sink_ops sink_ops = {.struct_size = sizeof(sink_ops), .submit = submit, .recall = recall};

static void yield(void *inst) {
  struct kafka_instance *kafka = inst;
  kafka_source_yield(&kafka->as.source);
}

static const struct duebox_source_ops source_ops = {
    .struct_size = sizeof(source_ops), .ack = ack, .resume = resume, .yield = yield};

extern const struct duebox_plugin duebox_plugin_v1;

DUEBOX_EXPORT const struct duebox_plugin duebox_plugin_v1 = {
    DUEBOX_PLUGIN_PREFIX,
    .capabilities = DUEBOX_CAP_SINK | DUEBOX_CAP_SOURCE,
    .name = "kafka",
    .version = "0.1.0",
    .summary = "Kafka topics through librdkafka: idempotent producer, results from a consumer group",
    .vendor = "librdkafka (built against " TEXT(RD_KAFKA_VERSION) ")",
    .options = kafka_option_rows,
    .options_size = sizeof(struct kafka_options),
    .route_options = kafka_route_rows,
    .route_size = sizeof(struct kafka_route),
    .source_options = kafka_result_rows,
    .source_size = sizeof(struct kafka_results),
    .instance_size = sizeof(struct kafka_instance),
    .check = kafka_check,
    .check_route = kafka_check_route,
    .create = create,
    .start = start,
    .poll = poll_instance,
    .wakeup = wakeup,
    .close = close_instance,
    .stop = stop,
    .destroy = destroy,
    .sink = &sink_ops,
    .source = &source_ops,
    .check_targets = kafka_check_targets,
    .max_checkpoint = kafka_max_checkpoint,
};
