/* SPDX-License-Identifier: MIT
 *
 * tests/bench/kafka_bench.c - plugins/kafka beside a bare librdkafka loop: messages per second and time to the report.
 *
 * Usage: kafka_bench [messages [bootstrap-servers [topic]]]. Without servers a mock cluster inside the process takes
 * the messages, so that the client is what is measured. Both sides send 200 bytes with a key and four headers, with
 * acks=all and idempotence, and have at most 20,000 messages open. One thread drives; librdkafka has its own.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#include "plugins/kafka/kafka_message.h"
#include "plugins/kafka/kafka_options.h"

#define OPEN 20000
#define BATCH 1000
#define PAYLOAD 200

extern const struct duebox_plugin duebox_plugin_v1;

struct bench {
  const char *servers;
  struct kafka_options options;
  struct kafka_route route;
  size_t messages, completed, failed;
  struct duebox_task tasks[OPEN];
  const struct duebox_task *free_tasks[OPEN];
  size_t free_count;
};

static int64_t now_us(void) {
  struct timespec ts;
  clock_gettime(CLOCK_MONOTONIC, &ts);
  return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static void die(const char *what, const char *text) {
  fprintf(stderr, "kafka_bench: %s: %s\n", what, text);
  exit(1);
}

/* --- host --- */

static void complete(void *ctx, uint64_t token, const struct duebox_outcome *outcome) {
  struct bench *bench = ctx;
  bench->completed++;
  bench->failed += outcome->cls != DUEBOX_DELIVERED;
  bench->free_tasks[bench->free_count++] = &bench->tasks[token];
}

static void quiet_log(void *ctx, enum duebox_log_level level, const char *id, const char *fmt, ...) {
  if (level <= DUEBOX_LOG_WARN)
    fprintf(stderr, "kafka_bench: %s\n", id);
}

static void quiet_health(void *ctx, bool up, const char *text) {}

static void make_tasks(struct bench *bench) {
  static char payload[PAYLOAD];
  static char keys[OPEN][16], ids[OPEN][40];
  memset(payload, 'x', sizeof(payload));
  for (size_t i = 0; i < OPEN; i++) {
    int len = snprintf(keys[i], sizeof(keys[i]), "order-%zu", i);
    snprintf(ids[i], sizeof(ids[i]), "0199a2c4-7e00-7000-8000-%012zu", i);
    bench->tasks[i] = (struct duebox_task){
        .struct_size = sizeof(struct duebox_task),
        .token = i,
        .message_id = ids[i],
        .route = "orders.cancel",
        .attempt = 1,
        .timeout_ms = 30000,
        .due_us = 1767323045123456,
        .key = {keys[i], (size_t)len},
        .payload = {payload, PAYLOAD},
        .checkpoint = {"", 0},
        .route_data = &bench->route,
    };
    bench->free_tasks[bench->free_count++] = &bench->tasks[i];
  }
}

/* --- the plugin --- */

static size_t offer(struct bench *bench, void *inst, size_t sent) {
  size_t n = bench->free_count < BATCH ? bench->free_count : BATCH;
  if (n > bench->messages - sent)
    n = bench->messages - sent;
  size_t first = bench->free_count - n;
  const struct duebox_task *batch[BATCH];
  memcpy(batch, &bench->free_tasks[first], n * sizeof(*batch));
  bench->free_count = first;
  size_t k = n ? duebox_plugin_v1.sink->submit(inst, batch, n) : 0;
  for (size_t i = k; i < n; i++)
    bench->free_tasks[bench->free_count++] = batch[i];
  return k;
}

static void *open_plugin(struct bench *bench, const struct duebox_host *host) {
  const struct duebox_instance_config config = {.struct_size = sizeof(config),
                                                .role = DUEBOX_ROLE_SINK,
                                                .name = "bench",
                                                .options = &bench->options,
                                                .max_payload = 1 << 20,
                                                .max_inflight = OPEN};
  struct duebox_error err;
  void *inst = calloc(1, duebox_plugin_v1.instance_size);
  if (!inst || !duebox_plugin_v1.create(inst, &config, host, &err) || !duebox_plugin_v1.start(inst, &err))
    die("plugin", err.text);
  return inst;
}

static void run_plugin(struct bench *bench, void *inst, size_t messages) {
  bench->messages = messages;
  bench->completed = 0;
  for (size_t sent = 0; bench->completed < messages;) {
    size_t k = offer(bench, inst, sent);
    sent += k;
    duebox_plugin_v1.poll(inst, k ? 0 : 10);
  }
}

static double plugin_rate(struct bench *bench, size_t messages, double *latency_us) {
  const struct duebox_host host = {
      .struct_size = sizeof(host), .ctx = bench, .complete = complete, .log = quiet_log, .health = quiet_health};
  void *inst = open_plugin(bench, &host);
  run_plugin(bench, inst, 100); /* connects */
  int64_t begin = now_us();
  run_plugin(bench, inst, messages);
  double rate = (double)messages * 1e6 / (double)(now_us() - begin);
  begin = now_us();
  for (int i = 0; i < 200; i++)
    run_plugin(bench, inst, 1);
  *latency_us = (double)(now_us() - begin) / 200;
  duebox_plugin_v1.stop(inst, 1000);
  duebox_plugin_v1.destroy(inst);
  free(inst);
  if (bench->failed)
    die("plugin", "not everything was delivered");
  return rate;
}

/* --- the bare loop --- */

struct bare {
  size_t delivered, failed;
};

static void delivery_report(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque) {
  struct bare *bare = opaque;
  bare->delivered++;
  bare->failed += message->err != 0;
}

static rd_kafka_t *open_bare(const struct bench *bench, struct bare *bare) {
  const char *const settings[][2] = {{"bootstrap.servers", bench->servers},
                                     {"enable.idempotence", "true"},
                                     {"linger.ms", "0"},
                                     {"partitioner", "murmur2_random"},
                                     {"queue.buffering.max.messages", "20000"}};
  char text[256];
  rd_kafka_conf_t *conf = rd_kafka_conf_new();
  for (size_t i = 0; i < sizeof(settings) / sizeof(*settings); i++)
    if (rd_kafka_conf_set(conf, settings[i][0], settings[i][1], text, sizeof(text)) != RD_KAFKA_CONF_OK)
      die("bare", text);
  rd_kafka_conf_set_opaque(conf, bare);
  rd_kafka_conf_set_dr_msg_cb(conf, delivery_report);
  rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, sizeof(text));
  if (!rk)
    die("bare", text);
  return rk;
}

static void run_bare(const struct bench *bench, struct bare *bare, rd_kafka_t *rk, rd_kafka_topic_t *topic,
                     size_t messages) {
  bare->delivered = 0;
  for (size_t sent = 0; bare->delivered < messages;) {
    for (size_t i = 0; i < BATCH && sent < messages && sent - bare->delivered < OPEN; i++) {
      const struct duebox_task *task = &bench->tasks[sent % OPEN];
      rd_kafka_headers_t *headers = kafka_headers(task);
      if (rd_kafka_producev(rk, RD_KAFKA_V_RKT(topic), RD_KAFKA_V_PARTITION(RD_KAFKA_PARTITION_UA),
                            RD_KAFKA_V_VALUE((void *)task->payload.data, task->payload.len),
                            RD_KAFKA_V_KEY(task->key.data, task->key.len), RD_KAFKA_V_HEADERS(headers),
                            RD_KAFKA_V_END)) {
        rd_kafka_headers_destroy(headers);
        break;
      }
      sent++;
    }
    rd_kafka_poll(rk, sent < messages && sent - bare->delivered < OPEN ? 0 : 10);
  }
}

static double bare_rate(const struct bench *bench, size_t messages) {
  struct bare bare = {0, 0};
  rd_kafka_t *rk = open_bare(bench, &bare);
  rd_kafka_topic_t *topic = rd_kafka_topic_new(rk, bench->route.topic, NULL);
  run_bare(bench, &bare, rk, topic, 100);
  int64_t begin = now_us();
  run_bare(bench, &bare, rk, topic, messages);
  double rate = (double)messages * 1e6 / (double)(now_us() - begin);
  rd_kafka_topic_destroy(topic);
  rd_kafka_destroy(rk);
  if (bare.failed)
    die("bare", "not everything was delivered");
  return rate;
}

int main(int argc, char **argv) {
  static struct bench bench; /* large */
  char text[256];
  size_t messages = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000000;
  rd_kafka_t *owner = NULL;
  bench.servers = argc > 2 ? argv[2] : NULL;
  if (!bench.servers) {
    owner = rd_kafka_new(RD_KAFKA_PRODUCER, NULL, text, sizeof(text));
    bench.servers = rd_kafka_mock_cluster_bootstraps(rd_kafka_mock_cluster_new(owner, 1));
  }
  bench.options = (struct kafka_options){.brokers = {&bench.servers, 1}, .delivery_timeout_ms = 30000};
  bench.route = (struct kafka_route){argc > 3 ? argv[3] : "bench", "{task_key}", -1};
  make_tasks(&bench);
  for (int round = 1; round <= 3; round++) {
    double latency_us, bare = bare_rate(&bench, messages), plugin = plugin_rate(&bench, messages, &latency_us);
    printf("round %d: bare %.0f/s, plugin %.0f/s, ratio %.2f; one at a time %.0f us\n", round, bare, plugin,
           plugin / bare, latency_us);
  }
  return 0;
}
