/* SPDX-License-Identifier: MIT
 *
 * tests/support/kafka_cluster.c - see kafka_cluster.h.
 */
#include "tests/support/kafka_cluster.h"

#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <setjmp.h>

#include <cmocka.h>

#include "tests/support/fake_host.h"

#define TASK_PARTITIONS 4
#define RESULT_PARTITIONS 2
#define ACK_MS 30000
#define CREATE_TRIES 60

static void set(rd_kafka_conf_t *conf, const char *key, const char *value) {
  char text[256];
  if (rd_kafka_conf_set(conf, key, value, text, sizeof(text)) != RD_KAFKA_CONF_OK)
    fail_msg("test client: %s", text);
}

static rd_kafka_t *client(rd_kafka_type_t type, rd_kafka_conf_t *conf) {
  char text[256];
  rd_kafka_conf_set_log_cb(conf, NULL);
  rd_kafka_t *rk = rd_kafka_new(type, conf, text, sizeof(text));
  if (!rk)
    fail_msg("test client: %s", text);
  return rk;
}

static void open_owner(struct kafka_cluster *cluster, const char *bootstrap) {
  rd_kafka_conf_t *conf = rd_kafka_conf_new();
  set(conf, "message.max.bytes", "20000000");
  set(conf, "linger.ms", "0");
  set(conf, "message.timeout.ms", "60000");
  if (bootstrap)
    set(conf, "bootstrap.servers", bootstrap);
  cluster->rk = client(RD_KAFKA_PRODUCER, conf);
}

/* The client that owns the mock cannot be a client of it from the start: there is no address yet. */
static void open_mock(struct kafka_cluster *cluster) {
  open_owner(cluster, NULL);
  cluster->cluster = rd_kafka_mock_cluster_new(cluster->rk, 1);
  assert_non_null(cluster->cluster);
  cluster->bootstrap = rd_kafka_mock_cluster_bootstraps(cluster->cluster);
  rd_kafka_mock_topic_create(cluster->cluster, cluster->tasks, TASK_PARTITIONS, 1);
  rd_kafka_mock_topic_create(cluster->cluster, cluster->answers, RESULT_PARTITIONS, 1);
  /* The mock creates a topic for whoever asks (it speaks Metadata v2, which knows no refusal), but not this one. */
  rd_kafka_mock_topic_set_error(cluster->cluster, "no-such-topic", RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
  rd_kafka_brokers_add(cluster->rk, cluster->bootstrap);
}

static rd_kafka_NewTopic_t *new_topic(const char *name, int partitions, const char *config, const char *value) {
  char text[256];
  rd_kafka_NewTopic_t *topic = rd_kafka_NewTopic_new(name, partitions, 1, text, sizeof(text));
  if (!topic)
    fail_msg("topic %s: %s", name, text);
  rd_kafka_NewTopic_set_config(topic, "max.message.bytes", "12000000");
  if (config)
    rd_kafka_NewTopic_set_config(topic, config, value);
  return topic;
}

/* One attempt; error is "" when the topics are there. */
static const char *try_create(struct kafka_cluster *cluster, rd_kafka_NewTopic_t **topics, char error[256]) {
  rd_kafka_queue_t *queue = rd_kafka_queue_new(cluster->rk);
  rd_kafka_CreateTopics(cluster->rk, topics, 2, NULL, queue);
  rd_kafka_event_t *event = rd_kafka_queue_poll(queue, ACK_MS);
  size_t count = 0;
  const rd_kafka_topic_result_t **results =
      event ? rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event), &count) : NULL;
  snprintf(error, 256, "%s", count ? "" : "no answer");
  for (size_t i = 0; i < count; i++) {
    rd_kafka_resp_err_t code = rd_kafka_topic_result_error(results[i]);
    if (code && code != RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS)
      snprintf(error, 256, "%s", rd_kafka_topic_result_error_string(results[i]));
  }
  if (event)
    rd_kafka_event_destroy(event);
  rd_kafka_queue_destroy(queue);
  return error;
}

/* A broker that has just come back refuses for a while ("all brokers are fenced"). */
static void create_topics(struct kafka_cluster *cluster, const char *config, const char *value) {
  rd_kafka_NewTopic_t *topics[] = {new_topic(cluster->tasks, TASK_PARTITIONS, config, value),
                                   new_topic(cluster->answers, RESULT_PARTITIONS, NULL, NULL)};
  char error[256];
  for (int left = CREATE_TRIES; *try_create(cluster, topics, error) && --left > 0;)
    usleep(500000);
  rd_kafka_NewTopic_destroy_array(topics, 2);
  if (*error)
    fail_msg("topics %s and %s: %s", cluster->tasks, cluster->answers, error);
}

static void open_reader(struct kafka_cluster *cluster) {
  rd_kafka_conf_t *conf = rd_kafka_conf_new();
  set(conf, "bootstrap.servers", cluster->bootstrap);
  set(conf, "group.id", "reader");
  set(conf, "fetch.wait.max.ms", "10");
  set(conf, "reconnect.backoff.max.ms", "500");
  set(conf, "auto.offset.reset", "earliest");
  set(conf, "fetch.message.max.bytes", "12000000");
  set(conf, "enable.auto.commit", "false");
  cluster->reader = client(RD_KAFKA_CONSUMER, conf);
  rd_kafka_poll_set_consumer(cluster->reader);
  rd_kafka_topic_partition_list_t *all = rd_kafka_topic_partition_list_new(TASK_PARTITIONS);
  for (int i = 0; i < TASK_PARTITIONS; i++)
    rd_kafka_topic_partition_list_add(all, cluster->tasks, i)->offset = RD_KAFKA_OFFSET_BEGINNING;
  assert_int_equal(rd_kafka_assign(cluster->reader, all), RD_KAFKA_RESP_ERR_NO_ERROR);
  rd_kafka_topic_partition_list_destroy(all);
}

void kafka_cluster_pass(struct kafka_cluster *cluster, const char *key, const char *value) {
  size_t at = cluster->options.rdkafka.count++;
  assert_true(at < KAFKA_CLUSTER_PASSED);
  cluster->passed[at] = (struct duebox_pair){key, value};
}

static void fill_options(struct kafka_cluster *cluster) {
  const char *debug = getenv("DUEBOX_TEST_RDKAFKA_DEBUG"); /* e.g. "cgrp,msg", with DUEBOX_TEST_LOG=1 */
  fake_options(kafka_option_rows, &cluster->options);
  cluster->options.brokers = (struct duebox_list){&cluster->bootstrap, 1};
  cluster->options.delivery_timeout_ms = 3000;
  cluster->broken = cluster->options;
  cluster->breaking = (struct duebox_pair){"acks", "0"};
  cluster->broken.rdkafka = (struct duebox_map){&cluster->breaking, 1};
  cluster->options.rdkafka = (struct duebox_map){cluster->passed, 0};
  if (debug)
    kafka_cluster_pass(cluster, "debug", debug);
  fake_options(kafka_route_rows, &cluster->route);
  cluster->missing = cluster->route;
  cluster->route.topic = cluster->tasks;
  cluster->missing.topic = "no-such-topic";
  fake_options(kafka_result_rows, &cluster->results);
  cluster->results.topic = cluster->answers;
}

static struct kafka_cluster *new_cluster(const char *tasks, const char *answers) {
  struct kafka_cluster *cluster = calloc(1, sizeof(*cluster));
  assert_non_null(cluster);
  snprintf(cluster->tasks, sizeof(cluster->tasks), "%s", tasks);
  snprintf(cluster->answers, sizeof(cluster->answers), "%s", answers);
  return cluster;
}

struct kafka_cluster *kafka_cluster_open_mock(void) {
  struct kafka_cluster *cluster = new_cluster("tasks", "results");
  open_mock(cluster);
  open_reader(cluster);
  fill_options(cluster);
  /* After a member has left, the mock waits for nearly as long. A first member waits 3 s for its answer and must not be
   * taken for dead by then: the mock drops it without one. */
  kafka_cluster_pass(cluster, "session.timeout.ms", "5000");
  kafka_cluster_pass(cluster, "heartbeat.interval.ms", "500");
  return cluster;
}

struct kafka_cluster *kafka_cluster_open_real(const char *topic_config, const char *value) {
  static int number;
  char tasks[40], answers[40];
  number++;
  snprintf(tasks, sizeof(tasks), "tasks-%d-%d", (int)getpid(), number);
  snprintf(answers, sizeof(answers), "results-%d-%d", (int)getpid(), number);
  struct kafka_cluster *cluster = new_cluster(tasks, answers);
  cluster->bootstrap = getenv("DUEBOX_TEST_KAFKA_BOOTSTRAP");
  open_owner(cluster, cluster->bootstrap);
  create_topics(cluster, topic_config, value);
  open_reader(cluster);
  fill_options(cluster);
  cluster->results.group = cluster->answers; /* a group of its own: no member that an earlier test left for dead */
  return cluster;
}

void kafka_cluster_close(struct kafka_cluster *cluster) {
  for (size_t i = 0; i < cluster->seen_count; i++) {
    free((void *)cluster->seen[i].headers);
    rd_kafka_message_destroy(cluster->raw[i]);
  }
  free(cluster->raw);
  free(cluster->seen);
  if (cluster->reader)
    rd_kafka_destroy_flags(cluster->reader, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
  if (cluster->cluster)
    rd_kafka_mock_cluster_destroy(cluster->cluster);
  rd_kafka_destroy(cluster->rk);
  free(cluster);
}

int kafka_cluster_set_up(void **state) {
  *state = kafka_cluster_open_mock();
  return 0;
}

int kafka_cluster_tear_down(void **state) {
  kafka_cluster_close(*state);
  return 0;
}

void kafka_cluster_ask(const char *what) {
  char answer[64];
  printf("@%s\n", what);
  fflush(stdout);
  if (!fgets(answer, sizeof(answer), stdin) || strcmp(answer, "done\n") != 0)
    fail_msg("asked for \"%s\", which was not done", what);
}

void kafka_cluster_reachable(struct kafka_cluster *cluster, bool up) {
  rd_kafka_resp_err_t err = RD_KAFKA_RESP_ERR_NO_ERROR;
  if (!cluster->cluster)
    kafka_cluster_ask(up ? "start" : "kill");
  else
    err = up ? rd_kafka_mock_broker_set_up(cluster->cluster, -1) : rd_kafka_mock_broker_set_down(cluster->cluster, -1);
  assert_int_equal(err, RD_KAFKA_RESP_ERR_NO_ERROR);
}

static void keep(struct kafka_cluster *cluster, rd_kafka_message_t *raw) {
  struct contract_message message = {.id = "", .body = {raw->payload ? raw->payload : "", raw->len}};
  rd_kafka_headers_t *headers;
  if (cluster->seen_count == cluster->seen_cap) {
    cluster->seen_cap = cluster->seen_cap ? cluster->seen_cap * 2 : 256;
    cluster->seen = realloc(cluster->seen, cluster->seen_cap * sizeof(*cluster->seen));
    cluster->raw = realloc(cluster->raw, cluster->seen_cap * sizeof(*cluster->raw));
    assert_true(cluster->seen && cluster->raw);
  }
  if (rd_kafka_message_headers(raw, &headers) == RD_KAFKA_RESP_ERR_NO_ERROR) {
    size_t count = rd_kafka_header_cnt(headers);
    struct duebox_header *list = calloc(count + 1, sizeof(*list));
    assert_non_null(list);
    for (size_t i = 0; i < count; i++) {
      const void *value;
      rd_kafka_header_get_all(headers, i, &list[i].name, &value, &list[i].value.len);
      list[i].value.data = value ? value : "";
      if (strcmp(list[i].name, "duebox-id") == 0)
        message.id = list[i].value.data; /* librdkafka puts a NUL behind every value */
      if (strcmp(list[i].name, "duebox-attempt") == 0)
        message.attempt = (uint32_t)strtoul(list[i].value.data, NULL, 10);
    }
    message.headers = list;
    message.header_count = count;
  }
  cluster->seen[cluster->seen_count] = message;
  cluster->raw[cluster->seen_count++] = raw;
}

const struct contract_message *kafka_cluster_received(struct kafka_cluster *cluster, size_t *count) {
  rd_kafka_message_t *raw;
  while ((raw = rd_kafka_consumer_poll(cluster->reader, 0))) {
    if (raw->err)
      rd_kafka_message_destroy(raw); /* an outage the test made itself */
    else
      keep(cluster, raw);
  }
  *count = cluster->seen_count;
  return cluster->seen;
}

const rd_kafka_message_t *kafka_cluster_raw(struct kafka_cluster *cluster, size_t index) { return cluster->raw[index]; }

void kafka_cluster_publish(struct kafka_cluster *cluster, const char *body, size_t len) {
  rd_kafka_resp_err_t err =
      rd_kafka_producev(cluster->rk, RD_KAFKA_V_TOPIC(cluster->answers),
                        RD_KAFKA_V_PARTITION((int32_t)(cluster->published++ % RESULT_PARTITIONS)),
                        RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_VALUE((void *)body, len), RD_KAFKA_V_END);
  assert_int_equal(err, RD_KAFKA_RESP_ERR_NO_ERROR);
  assert_int_equal(rd_kafka_flush(cluster->rk, ACK_MS), RD_KAFKA_RESP_ERR_NO_ERROR);
}

/* A request as it goes over the wire. */
struct request {
  uint8_t data[512];
  size_t len;
};

static void put(struct request *request, uint64_t value, size_t bytes) {
  assert_true(request->len + bytes <= sizeof(request->data));
  for (size_t i = bytes; i-- > 0;)
    request->data[request->len++] = (uint8_t)(value >> (8 * i));
}

static void put_text(struct request *request, const char *text) {
  put(request, strlen(text), 2);
  for (; *text; text++)
    put(request, (uint8_t)*text, 1);
}

/* Writes the length of what follows in the place that was left for it. */
static void put_len(struct request *request, size_t at) {
  struct request len = {.len = at};
  put(&len, request->len - at - 4, 4);
  memcpy(request->data + at, len.data + at, 4);
}

static uint32_t crc32c(const uint8_t *data, size_t len) {
  uint32_t crc = UINT32_MAX;
  for (size_t i = 0; i < len; i++) {
    crc ^= data[i];
    for (int bit = 0; bit < 8; bit++)
      crc = crc & 1 ? crc >> 1 ^ 0x82F63B78 : crc >> 1;
  }
  return ~crc;
}

/* A zigzag varint, as records are made of. */
static void put_varint(struct request *request, int64_t value) {
  uint64_t rest = (uint64_t)value << 1 ^ (uint64_t)(value >> 63);
  for (; rest > 127; rest >>= 7)
    put(request, (rest & 127) | 128, 1);
  put(request, rest, 1);
}

/* A RecordBatch of magic 2: one record, or so many that say they are packed with gzip. */
struct batch {
  uint32_t records;
  uint8_t attributes;
  int64_t delta;
  const char *body;
};

/* One record that claims to be so far behind the first of its batch. */
static void put_record(struct request *request, const struct batch *batch) {
  struct request record = {.len = 0};
  put(&record, 0, 2); /* attributes, timestamp */
  put_varint(&record, batch->delta);
  put_varint(&record, -1); /* no key */
  put_varint(&record, (int64_t)strlen(batch->body));
  for (const char *at = batch->body; *at; at++)
    put(&record, (uint8_t)*at, 1);
  put_varint(&record, 0); /* no headers */
  put_varint(request, (int64_t)record.len);
  for (size_t i = 0; i < record.len; i++)
    put(request, record.data[i], 1);
}

static void put_batch(struct request *request, const struct batch *what) {
  uint32_t records = what->records;
  size_t batch = request->len + 8;
  put(request, 0, 8); /* base offset: the broker's to say */
  put(request, 0, 4);
  put(request, 0, 4); /* leader epoch */
  put(request, 2, 1);
  size_t crc = request->len;
  put(request, 0, 4);
  put(request, what->attributes, 2);
  put(request, (uint64_t)records - 1, 4);   /* last offset */
  put(request, UINT64_C(1700000000000), 8); /* first and last timestamp */
  put(request, UINT64_C(1700000000000), 8);
  put(request, UINT64_MAX, 8); /* producer id, epoch, sequence: none */
  put(request, UINT64_MAX, 6);
  put(request, records, 4);
  if (what->body)
    put_record(request, what);
  else
    put(request, UINT64_C(0x6e6f20677a697021), 8); /* "no gzip!" */
  struct request sum = {.len = crc};
  put(&sum, crc32c(request->data + crc + 4, request->len - crc - 4), 4);
  memcpy(request->data + crc, sum.data + crc, 4);
  put_len(request, batch);
}

static void publish_batch(struct kafka_cluster *cluster, const struct batch *batch) {
  struct request request = {.len = 4};
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  uint8_t answer[4];
  address.sin_port = htons((uint16_t)strtoul(strrchr(cluster->bootstrap, ':') + 1, NULL, 10));
  put(&request, KAFKA_CLUSTER_PRODUCE << 16 | 7, 4); /* of version 7 */
  put(&request, 1, 4);
  put_text(&request, "stranger");
  put(&request, UINT64_C(0xFFFFFFFF) << 32 | ACK_MS, 8); /* no transaction, acks = all */
  put(&request, 1, 4);
  put_text(&request, cluster->answers);
  put(&request, 1, 4);
  put(&request, cluster->published++ % RESULT_PARTITIONS, 4);
  size_t records_at = request.len;
  put(&request, 0, 4);
  put_batch(&request, batch);
  put_len(&request, records_at);
  put_len(&request, 0);
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
  assert_int_equal(send(fd, request.data, request.len, 0), request.len);
  assert_int_equal(recv(fd, answer, sizeof(answer), MSG_WAITALL), sizeof(answer));
  close(fd);
}

void kafka_cluster_publish_unreadable(struct kafka_cluster *cluster, uint32_t records) {
  publish_batch(cluster, &(struct batch){.records = records, .attributes = 1});
}

void kafka_cluster_publish_claiming(struct kafka_cluster *cluster, int64_t delta, const char *body) {
  publish_batch(cluster, &(struct batch){.records = 1, .delta = delta, .body = body});
}

void kafka_cluster_fail_produce(struct kafka_cluster *cluster, rd_kafka_resp_err_t err, size_t count) {
  for (size_t i = 0; i < count; i++)
    rd_kafka_mock_push_request_errors(cluster->cluster, KAFKA_CLUSTER_PRODUCE, 1, err);
}
