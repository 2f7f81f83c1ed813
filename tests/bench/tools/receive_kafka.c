/* SPDX-License-Identifier: MIT */
#include <librdkafka/rdkafka.h>
#include <stdlib.h>
#include <string.h>

#include "receive.h"

enum { BATCH = 1000, CONNECT_LIMIT_MS = 10000, ANSWER = 160, FLUSH_LIMIT_MS = 10000 };

struct kafka {
  rd_kafka_t *consumer, *producer; /* producer: with answers only */
  rd_kafka_queue_t *queue;
  rd_kafka_topic_t *answers;
};

static rd_kafka_t *client(rd_kafka_type_t type, const char *const (*settings)[2], const char *brokers) {
  char text[256];
  rd_kafka_conf_t *conf = rd_kafka_conf_new();
  if (rd_kafka_conf_set(conf, "bootstrap.servers", brokers, text, sizeof text) != RD_KAFKA_CONF_OK)
    receive_fail("brokers", text);
  for (; (*settings)[0]; settings++)
    if (rd_kafka_conf_set(conf, (*settings)[0], (*settings)[1], text, sizeof text) != RD_KAFKA_CONF_OK)
      receive_fail((*settings)[0], text);
  rd_kafka_t *made = rd_kafka_new(type, conf, text, sizeof text);
  if (!made)
    receive_fail("client", text);
  return made;
}

static void must(const char *what, rd_kafka_resp_err_t err) {
  if (err)
    receive_fail(what, rd_kafka_err2str(err));
}

static int partitions_of(struct kafka *k, const char *topic) {
  const struct rd_kafka_metadata *metadata = NULL;
  rd_kafka_topic_t *named = rd_kafka_topic_new(k->consumer, topic, NULL);
  if (!named)
    receive_fail("topic", rd_kafka_err2str(rd_kafka_last_error()));
  must("topic", rd_kafka_metadata(k->consumer, 0, named, &metadata, CONNECT_LIMIT_MS));
  int count = metadata->topic_cnt == 1 ? metadata->topics[0].partition_cnt : 0;
  rd_kafka_metadata_destroy(metadata);
  rd_kafka_topic_destroy(named);
  return count;
}

/* Offsets are asked for and named, so nothing that is sent after "ready" is missed. */
static void assign(struct kafka *k, const struct receiver *receiver) {
  int count = partitions_of(k, receiver->what);
  rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(count);
  for (int32_t i = 0; i < count; i++) {
    int64_t low = 0, high = 0;
    must("offsets", rd_kafka_query_watermark_offsets(k->consumer, receiver->what, i, &low, &high, CONNECT_LIMIT_MS));
    rd_kafka_topic_partition_list_add(list, receiver->what, i)->offset = receiver->from_beginning ? low : high;
  }
  must("assign", rd_kafka_assign(k->consumer, list));
  rd_kafka_topic_partition_list_destroy(list);
}

static void open_clients(struct kafka *k, const struct receiver *receiver) {
  static const char *const consumer[][2] = {
      {"group.id", "bench"},   {"enable.auto.commit", "false"},   {"fetch.wait.max.ms", "100"},
      {"check.crcs", "false"}, {"enable.partition.eof", "false"}, {NULL, NULL}};
  static const char *const producer[][2] = {{"linger.ms", "0"}, {"enable.idempotence", "true"}, {NULL, NULL}};
  k->consumer = client(RD_KAFKA_CONSUMER, consumer, receiver->where);
  must("consumer", rd_kafka_poll_set_consumer(k->consumer));
  k->queue = rd_kafka_queue_get_consumer(k->consumer);
  assign(k, receiver);
  if (!receiver->answer)
    return;
  k->producer = client(RD_KAFKA_PRODUCER, producer, receiver->where);
  k->answers = rd_kafka_topic_new(k->producer, receiver->answer, NULL);
  if (!k->answers)
    receive_fail("answers", rd_kafka_err2str(rd_kafka_last_error()));
}

static const char *header(const rd_kafka_headers_t *headers, const char *name, size_t *len) {
  const void *value = "";
  *len = 0;
  if (rd_kafka_header_get_last(headers, name, &value, len) != RD_KAFKA_RESP_ERR_NO_ERROR)
    return "";
  return value;
}

static void answer(struct kafka *k, const rd_kafka_headers_t *headers) {
  char record[ANSWER];
  size_t id_len, attempt_len;
  const char *id = header(headers, "duebox-id", &id_len), *attempt = header(headers, "duebox-attempt", &attempt_len);
  int len = snprintf(record, sizeof record, "{\"id\": \"%.*s\", \"attempt\": %.*s, \"status\": \"done\"}", (int)id_len,
                     id, (int)attempt_len, attempt);
  while (rd_kafka_produce(k->answers, RD_KAFKA_PARTITION_UA, RD_KAFKA_MSG_F_COPY, record, (size_t)len, NULL, 0, NULL)) {
    if (rd_kafka_last_error() != RD_KAFKA_RESP_ERR__QUEUE_FULL)
      receive_fail("answer", rd_kafka_err2str(rd_kafka_last_error()));
    rd_kafka_poll(k->producer, 1);
  }
}

static void take(struct kafka *k, struct receiver *receiver, rd_kafka_message_t *message) {
  rd_kafka_headers_t *headers = NULL;
  size_t len = 0;
  const char *due = "";
  must("record", message->err);
  if (rd_kafka_message_headers(message, &headers) == RD_KAFKA_RESP_ERR_NO_ERROR)
    due = header(headers, "duebox-due", &len);
  receive_one(receiver, message->payload, message->len, book_parse_due(due, len));
  if (k->producer && headers)
    answer(k, headers);
  rd_kafka_message_destroy(message);
}

void receive_kafka(struct receiver *receiver) {
  struct kafka k = {NULL, NULL, NULL, NULL};
  rd_kafka_message_t *batch[BATCH];
  open_clients(&k, receiver);
  receive_ready();
  /* One at a time: a call for many waits for its time-out when there are few. */
  while (receive_goes_on(receiver)) {
    rd_kafka_message_t *first = rd_kafka_consumer_poll(k.consumer, RECEIVE_POLL_MS);
    ssize_t more = first ? rd_kafka_consume_batch_queue(k.queue, 0, batch, BATCH) : 0;
    if (first)
      take(&k, receiver, first);
    for (ssize_t i = 0; i < more; i++)
      take(&k, receiver, batch[i]);
    if (k.producer)
      rd_kafka_poll(k.producer, 0);
  }
  if (k.producer) {
    must("answers", rd_kafka_flush(k.producer, FLUSH_LIMIT_MS));
    rd_kafka_topic_destroy(k.answers);
    rd_kafka_destroy(k.producer);
  }
  rd_kafka_queue_destroy(k.queue);
  must("close", rd_kafka_consumer_close(k.consumer));
  rd_kafka_destroy(k.consumer);
}
