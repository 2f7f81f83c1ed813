/* SPDX-License-Identifier: MIT
 *
 * tests/bench/tools/raw_kafka.c - rows into a topic, with the settings and the headers of plugins/kafka and nothing
 * else.
 */
#include <librdkafka/rdkafka.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kafka_conf.h"
#include "raw_loop.h"
#include "tests/support/fake_host.h"

enum { CONNECT_LIMIT_MS = 10000 };

struct kafka {
  const struct raw_settings *settings;
  rd_kafka_t *producer;
  rd_kafka_topic_t *topic;
  rd_kafka_queue_t *reports;
  rd_kafka_event_t *event; /* reports that were not all taken */
};

static rd_kafka_conf_t *configuration(const struct raw_settings *s) {
  struct kafka_options options = {0};
  fake_options(kafka_option_rows, &options);
  const char *const brokers[] = {s->to};
  options.brokers = (struct duebox_list){.items = brokers, .count = 1};
  const struct kafka_limits limits = {.name = "raw-loop", .max_payload = 1 << 20, .max_inflight = (uint32_t)s->window};
  struct duebox_error err = {""};
  rd_kafka_conf_t *conf = kafka_conf_producer(&options, &limits, &err);
  if (!conf)
    raw_fail("producer", err.text);
  return conf;
}

static void *open_kafka(const struct raw_settings *s) {
  struct kafka *k = calloc(1, sizeof *k);
  char text[256];
  if (!k || !s->to || !s->topic)
    raw_fail("kafka", "give brokers and a topic");
  k->settings = s;
  k->producer = rd_kafka_new(RD_KAFKA_PRODUCER, configuration(s), text, sizeof text);
  if (!k->producer)
    raw_fail("producer", text);
  k->reports = rd_kafka_queue_get_main(k->producer);
  k->topic = rd_kafka_topic_new(k->producer, s->topic, NULL);
  if (!k->topic)
    raw_fail("topic", rd_kafka_err2str(rd_kafka_last_error()));
  /* The daemon's producer is connected before its first row is read. */
  const struct rd_kafka_metadata *metadata = NULL;
  rd_kafka_resp_err_t failed = rd_kafka_metadata(k->producer, 0, k->topic, &metadata, CONNECT_LIMIT_MS);
  if (failed)
    raw_fail("topic", rd_kafka_err2str(failed));
  rd_kafka_metadata_destroy(metadata);
  return k;
}

static void send_kafka(void *sink, const struct raw_row *row) {
  struct kafka *k = sink;
  char due[RAW_DUE_TEXT];
  raw_due_header(row->due, due);
  rd_kafka_headers_t *headers = rd_kafka_headers_new(4);
  rd_kafka_header_add(headers, "duebox-id", -1, row->message_id, (ssize_t)row->message_id_len);
  rd_kafka_header_add(headers, "duebox-attempt", -1, "1", 1);
  rd_kafka_header_add(headers, "duebox-route", -1, k->settings->route, -1);
  rd_kafka_header_add(headers, "duebox-due", -1, due, -1);
  rd_kafka_resp_err_t err = rd_kafka_producev(
      k->producer, RD_KAFKA_V_RKT(k->topic), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
      RD_KAFKA_V_VALUE((void *)row->payload, row->payload_len), RD_KAFKA_V_KEY(row->key, row->key_len),
      RD_KAFKA_V_HEADERS(headers), RD_KAFKA_V_OPAQUE((void *)(uintptr_t)row->id), RD_KAFKA_V_END);
  if (err)
    raw_fail("produce", rd_kafka_err2str(err));
}

/* One event of delivery reports at most; only when it is destroyed librdkafka counts its messages as gone. */
static size_t reap_kafka(void *sink, uint64_t *ids, size_t cap, int wait_ms) {
  struct kafka *k = sink;
  const rd_kafka_message_t *message = NULL;
  size_t count = 0;
  if (!k->event)
    k->event = rd_kafka_queue_poll(k->reports, wait_ms);
  if (!k->event)
    return 0;
  while (count < cap && rd_kafka_event_type(k->event) == RD_KAFKA_EVENT_DR &&
         (message = rd_kafka_event_message_next(k->event))) {
    if (message->err)
      raw_fail("delivery", rd_kafka_err2str(message->err));
    ids[count++] = (uint64_t)(uintptr_t)message->_private;
  }
  if (count < cap) {
    rd_kafka_event_destroy(k->event);
    k->event = NULL;
  }
  return count;
}

static void close_kafka(void *sink) {
  struct kafka *k = sink;
  if (k->event)
    rd_kafka_event_destroy(k->event);
  rd_kafka_topic_destroy(k->topic);
  rd_kafka_queue_destroy(k->reports);
  rd_kafka_destroy(k->producer);
  free(k);
}

const struct raw_sink raw_kafka = {"kafka", open_kafka, send_kafka, reap_kafka, close_kafka};
