/* SPDX-License-Identifier: MIT
 *
 * tests/contract/test_kafka_real.c - plugins/kafka against a real broker, for what a mock does not do: judge records,
 * crash and come back with its log, stop answering.
 *
 * Started by tests/integration/test_kafka_plugin.py, which also hurts the broker on request.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <setjmp.h>

#include <cmocka.h>

#include "tests/support/fake_host.h"
#include "tests/support/kafka_cluster.h"

#define LIMIT_MS 60000

extern const struct duebox_plugin duebox_plugin_v1;

static struct fake_host *open_sink(struct kafka_cluster *cluster, uint32_t max_inflight) {
  return fake_host_open(&(struct fake_host_config){
      .plugin = &duebox_plugin_v1,
      .role = DUEBOX_ROLE_SINK,
      .options = &cluster->options,
      .max_inflight = max_inflight,
  });
}

static struct duebox_bytes text(const char *s) { return (struct duebox_bytes){s, strlen(s)}; }

static void settle(struct fake_host *host) {
  if (!fake_host_settle(host, LIMIT_MS))
    fail_msg("%zu of %zu tasks completed", fake_host_completed(host), fake_host_tasks(host));
}

/* How many of the tasks of this class the broker holds: each of them `least` to `most` times. */
static void check_held(struct kafka_cluster *cluster, struct fake_host *host, enum duebox_outcome_class cls,
                       size_t least, size_t most) {
  size_t tasks = fake_host_tasks(host), count, missing = 1;
  unsigned *copies = calloc(tasks, sizeof(*copies));
  assert_non_null(copies);
  for (int64_t end = fake_host_now_ms() + LIMIT_MS; missing && fake_host_now_ms() < end; usleep(10000)) {
    const struct contract_message *messages = kafka_cluster_received(cluster, &count);
    memset(copies, 0, tasks * sizeof(*copies));
    for (size_t i = 0; i < count; i++)
      copies[strtoul(strrchr(messages[i].id, '-') + 1, NULL, 10)]++;
    missing = 0;
    for (size_t i = 0; i < tasks; i++)
      missing += fake_host_outcome(host, i).cls == cls && copies[i] < least;
  }
  for (size_t i = 0; i < tasks; i++)
    if (fake_host_outcome(host, i).cls == cls && (copies[i] < least || copies[i] > most))
      fail_msg("task %zu, of class %d, is held %u times", i, (int)cls, copies[i]);
  free(copies);
}

/* 100 small records in one batch, the guilty one in the middle. */
static void send_batch_with(struct kafka_cluster *cluster, const struct fake_task *guilty, const char *word) {
  kafka_cluster_pass(cluster, "linger.ms", "200");
  cluster->options.delivery_timeout_ms = 30000;
  struct fake_host *host = open_sink(cluster, 1000);
  for (size_t i = 0; i < 100; i++) {
    struct fake_task task = {.key = text("same"), .payload = text("{}"), .route_data = &cluster->route};
    fake_host_add(host, i == 50 ? guilty : &task);
  }
  settle(host);
  for (size_t i = 0; i < 100; i++) {
    struct fake_outcome outcome = fake_host_outcome(host, i);
    if (outcome.cls != (i == 50 ? DUEBOX_REJECTED : DUEBOX_DELIVERED))
      fail_msg("task %zu ended as class %d, %s: %s", i, (int)outcome.cls, outcome.error_class, outcome.message);
  }
  assert_string_equal(fake_host_outcome(host, 50).error_class, word);
  assert_int_equal(fake_host_logged(host, "KAFKA-BATCH-REFUSED"), 1);
  check_held(cluster, host, DUEBOX_DELIVERED, 1, 1);
  check_held(cluster, host, DUEBOX_REJECTED, 0, 0);
  fake_host_free(host);
}

static void only_the_record_that_is_too_large_is_rejected(void **state) {
  struct kafka_cluster *cluster = kafka_cluster_open_real("max.message.bytes", "3000");
  char large[5000];
  memset(large, 'x', sizeof(large));
  const struct fake_task guilty = {
      .key = text("same"), .payload = {large, sizeof(large)}, .route_data = &cluster->route};
  send_batch_with(cluster, &guilty, "kafka.msg_size_too_large");
  kafka_cluster_close(cluster);
}

static void only_the_record_without_a_key_is_rejected_by_a_compacted_topic(void **state) {
  struct kafka_cluster *cluster = kafka_cluster_open_real("cleanup.policy", "compact");
  struct kafka_route keyless = cluster->route;
  cluster->route.partition = keyless.partition = 0; /* the same batch */
  keyless.key = "";
  const struct fake_task guilty = {.payload = text("{}"), .route_data = &keyless};
  send_batch_with(cluster, &guilty, "kafka.invalid_record");
  kafka_cluster_close(cluster);
}

static void add_many(struct kafka_cluster *cluster, struct fake_host *host, size_t n) {
  char key[32];
  for (size_t i = 0; i < n; i++) {
    snprintf(key, sizeof(key), "order-%zu", i);
    fake_host_add(host,
                  &(struct fake_task){.key = text(key), .payload = text("{\"x\":1}"), .route_data = &cluster->route});
  }
}

static void kill_amid_3000(struct kafka_cluster *cluster, struct fake_host *host) {
  add_many(cluster, host, 3000);
  while (fake_host_completed(host) < 1000) {
    fake_host_offer(host);
    fake_host_poll(host, 10);
  }
  kafka_cluster_ask("kill");
}

/* Killed while 3,000 tasks are on their way and started again at once: the client bridges it, nobody sees a copy. */
static void a_crash_of_the_broker_is_bridged(void **state) {
  struct kafka_cluster *cluster = kafka_cluster_open_real(NULL, NULL);
  cluster->options.delivery_timeout_ms = 300000; /* the start of a broker takes long on a busy machine */
  struct fake_host *host = open_sink(cluster, 500);
  kill_amid_3000(cluster, host);
  for (int i = 0; i < 20; i++) {
    fake_host_offer(host);
    fake_host_poll(host, 10);
  }
  kafka_cluster_ask("start");
  settle(host);
  assert_int_equal(fake_host_count(host, DUEBOX_DELIVERED), 3000);
  check_held(cluster, host, DUEBOX_DELIVERED, 1, 1);
  fake_host_free(host);
  kafka_cluster_close(cluster);
}

/* Away for longer than delivery_timeout: whatever was not written is handed back, whatever may be is called unknown. */
static void a_long_outage_is_told_honestly(void **state) {
  struct kafka_cluster *cluster = kafka_cluster_open_real(NULL, NULL);
  struct fake_host *host = open_sink(cluster, 500);
  kill_amid_3000(cluster, host);
  size_t handed = fake_host_accepted(host) + 500;
  for (int64_t end = fake_host_now_ms() + LIMIT_MS; fake_host_completed(host) < handed && fake_host_now_ms() < end;) {
    fake_host_offer(host);
    fake_host_poll(host, 10);
  }
  assert_true(fake_host_completed(host) >= handed);
  assert_true(fake_host_count(host, DUEBOX_UNAVAILABLE) > 0);
  assert_int_equal(fake_host_health(host), 0);
  kafka_cluster_ask("start");
  settle(host);
  check_held(cluster, host, DUEBOX_DELIVERED, 1, 1);
  check_held(cluster, host, DUEBOX_UNKNOWN, 0, 1);
  check_held(cluster, host, DUEBOX_UNAVAILABLE, 0, 0);
  fake_host_free(host);
  kafka_cluster_close(cluster);
}

static void a_frozen_broker_makes_unknown(void **state) {
  struct kafka_cluster *cluster = kafka_cluster_open_real(NULL, NULL);
  cluster->options.delivery_timeout_ms = 10000; /* the first task is in time, on a busy machine too */
  struct fake_host *host = open_sink(cluster, 100);
  add_many(cluster, host, 1);
  settle(host);
  kafka_cluster_ask("pause");
  add_many(cluster, host, 20);
  bool settled = fake_host_settle(host, LIMIT_MS);
  kafka_cluster_ask("resume");
  assert_true(settled);
  assert_true(fake_host_count(host, DUEBOX_UNKNOWN) > 0);
  assert_int_equal(fake_host_count(host, DUEBOX_DELIVERED), 1);
  check_held(cluster, host, DUEBOX_UNAVAILABLE, 0, 0);
  fake_host_free(host);
  kafka_cluster_close(cluster);
}

static void delete_topic(struct kafka_cluster *cluster, const char *name) {
  rd_kafka_DeleteTopic_t *gone = rd_kafka_DeleteTopic_new(name);
  rd_kafka_queue_t *queue = rd_kafka_queue_new(cluster->rk);
  rd_kafka_DeleteTopics(cluster->rk, &gone, 1, NULL, queue);
  rd_kafka_event_destroy(rd_kafka_queue_poll(queue, LIMIT_MS));
  rd_kafka_queue_destroy(queue);
  rd_kafka_DeleteTopic_destroy(gone);
}

/* What was on its way when the topic went is unknown, honestly; what comes later is not sent. */
static void a_deleted_topic_is_the_routes_trouble(void **state) {
  struct kafka_cluster *cluster = kafka_cluster_open_real(NULL, NULL);
  rd_kafka_destroy_flags(cluster->reader, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
  cluster->reader = NULL; /* librdkafka 2.0.2 does not end a consumer whose topic is gone */
  struct fake_host *host = open_sink(cluster, 100);
  add_many(cluster, host, 5);
  settle(host);
  delete_topic(cluster, cluster->tasks);
  struct fake_outcome outcome = {.cls = DUEBOX_DELIVERED};
  for (int64_t end = fake_host_now_ms() + LIMIT_MS; outcome.cls != DUEBOX_UNAVAILABLE && fake_host_now_ms() < end;) {
    add_many(cluster, host, 1);
    settle(host);
    outcome = fake_host_outcome(host, fake_host_tasks(host) - 1);
  }
  if (outcome.cls != DUEBOX_UNAVAILABLE || outcome.scope != DUEBOX_SCOPE_TARGET)
    fail_msg("class %d, scope %d, %s: %s", (int)outcome.cls, (int)outcome.scope, outcome.error_class, outcome.message);
  fake_host_free(host);
  kafka_cluster_close(cluster);
}

static void a_deleted_result_topic_does_not_hold_up_stop(void **state) {
  struct kafka_cluster *cluster = kafka_cluster_open_real(NULL, NULL);
  struct fake_host *host = fake_host_open(&(struct fake_host_config){.plugin = &duebox_plugin_v1,
                                                                     .role = DUEBOX_ROLE_SOURCE,
                                                                     .options = &cluster->options,
                                                                     .source = &cluster->results});
  kafka_cluster_publish(cluster, "x", 1);
  assert_true(fake_host_wait_results(host, 1, LIMIT_MS));
  delete_topic(cluster, cluster->answers);
  for (int64_t end = fake_host_now_ms() + LIMIT_MS; fake_host_health(host) != 0 && fake_host_now_ms() < end;)
    fake_host_poll(host, 20);
  assert_int_equal(fake_host_health(host), 0);
  fake_host_ack(host, 0, true);
  assert_true(fake_host_stop(host, 2000) < 4000);
  fake_host_free(host);
  kafka_cluster_close(cluster);
}

/* Takes and acknowledges all after the first `seen` until the body comes. */
static void take_until(struct fake_host *host, size_t seen, const char *body) {
  bool found = false;
  for (int64_t end = fake_host_now_ms() + LIMIT_MS; !found && fake_host_now_ms() < end; fake_host_poll(host, 20))
    for (; seen < fake_host_results(host); seen++) {
      found = found || strcmp(fake_host_result(host, seen).body, body) == 0;
      fake_host_ack(host, seen, true);
    }
  if (!found)
    fail_msg("\"%s\" did not come, of %zu records", body, seen);
}

/* No record is lost in a crash of the broker right after the acknowledgements. Some may come again: the group may have
 * forgotten the member meanwhile, and its commit counts for nothing then. */
static void a_crash_between_ack_and_commit_repeats_but_loses_nothing(void **state) {
  struct kafka_cluster *cluster = kafka_cluster_open_real(NULL, NULL);
  struct fake_host_config config = {.plugin = &duebox_plugin_v1,
                                    .role = DUEBOX_ROLE_SOURCE,
                                    .options = &cluster->options,
                                    .source = &cluster->results};
  for (int i = 0; i < 50; i++)
    kafka_cluster_publish(cluster, "early", 5);
  struct fake_host *host = fake_host_open(&config);
  assert_true(fake_host_wait_results(host, 50, LIMIT_MS));
  for (size_t i = 0; i < 50; i++)
    fake_host_ack(host, i, true);
  kafka_cluster_ask("kill");
  for (int i = 0; i < 20; i++)
    fake_host_poll(host, 20);
  kafka_cluster_ask("start");
  kafka_cluster_publish(cluster, "late", 4);
  take_until(host, 50, "late");
  fake_host_stop(host, 10000);
  fake_host_free(host);
  host = fake_host_open(&config);
  kafka_cluster_publish(cluster, "last", 4);
  take_until(host, 0, "last");
  fake_host_stop(host, 10000);
  fake_host_free(host);
  host = fake_host_open(&config);
  kafka_cluster_publish(cluster, "end", 3);
  assert_true(fake_host_wait_results(host, 1, LIMIT_MS));
  assert_string_equal(fake_host_result(host, 0).body, "end"); /* everything before was committed in the end */
  fake_host_free(host);
  kafka_cluster_close(cluster);
}

static void no_broker(void **state) { skip(); }

int main(void) {
  if (!getenv("DUEBOX_TEST_KAFKA_BOOTSTRAP")) {
    const struct CMUnitTest none[] = {cmocka_unit_test(no_broker)};
    return cmocka_run_group_tests_name("kafka, real", none, NULL, NULL);
  }
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(only_the_record_that_is_too_large_is_rejected),
      cmocka_unit_test(only_the_record_without_a_key_is_rejected_by_a_compacted_topic),
      cmocka_unit_test(a_crash_of_the_broker_is_bridged),
      cmocka_unit_test(a_long_outage_is_told_honestly),
      cmocka_unit_test(a_frozen_broker_makes_unknown),
      cmocka_unit_test(a_deleted_topic_is_the_routes_trouble),
      cmocka_unit_test(a_deleted_result_topic_does_not_hold_up_stop),
      cmocka_unit_test(a_crash_between_ack_and_commit_repeats_but_loses_nothing),
  };
  cmocka_set_test_filter(getenv("DUEBOX_TEST_ONLY"));
  return cmocka_run_group_tests_name("kafka, real", tests, NULL, NULL);
}
