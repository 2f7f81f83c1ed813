/* SPDX-License-Identifier: MIT
 *
 * tests/contract/test_kafka_faults.c - the faults that only Kafka has, injected into a mock cluster: every class of
 * error at the first, a middle and the last request, refused batches, a broken sequence, a slow broker.
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

#define LIMIT_MS 30000
#define PATIENT_MS 20000 /* delivery_timeout where it is not what is tested: a busy machine must not run into it */
#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define E(name) RD_KAFKA_RESP_ERR_##name

extern const struct duebox_plugin duebox_plugin_v1;

static struct fake_host *open_sink(struct kafka_cluster *mock, uint32_t max_inflight) {
  return fake_host_open(&(struct fake_host_config){
      .plugin = &duebox_plugin_v1,
      .role = DUEBOX_ROLE_SINK,
      .options = &mock->options,
      .max_inflight = max_inflight,
  });
}

static struct duebox_bytes text(const char *s) { return (struct duebox_bytes){s, strlen(s)}; }

static size_t add(struct fake_host *host, const struct kafka_route *route, const char *key) {
  return fake_host_add(host, &(struct fake_task){.payload = text("{}"), .key = text(key), .route_data = route});
}

static void settle(struct fake_host *host) {
  if (!fake_host_settle(host, LIMIT_MS))
    fail_msg("%zu of %zu tasks completed", fake_host_completed(host), fake_host_tasks(host));
}

/* One request per message: each is settled before the next is added. */
static void send_one_by_one(struct fake_host *host, const struct kafka_route *route, size_t n) {
  for (size_t i = 0; i < n; i++) {
    add(host, route, "k");
    settle(host);
  }
}

static size_t copies(struct kafka_cluster *mock, const char *id) {
  size_t count, found = 0;
  const struct contract_message *messages = kafka_cluster_received(mock, &count);
  for (size_t i = 0; i < count; i++)
    found += strcmp(messages[i].id, id) == 0;
  return found;
}

static void wait_copies(struct kafka_cluster *mock, const char *id, size_t want) {
  for (int64_t end = fake_host_now_ms() + LIMIT_MS; fake_host_now_ms() < end; usleep(5000))
    if (copies(mock, id) >= want)
      return;
  fail_msg("%s is held %zu times", id, copies(mock, id));
}

static void check_outcome(struct fake_host *host, size_t i, enum duebox_outcome_class cls, const char *word) {
  struct fake_outcome outcome = fake_host_outcome(host, i);
  if (outcome.cls != cls || (word && strcmp(outcome.error_class, word) != 0))
    fail_msg("task %zu ended as class %d, %s: %s", i, (int)outcome.cls, outcome.error_class, outcome.message);
}

/* --- errors at the first, a middle and the last request --- */

struct fault {
  rd_kafka_resp_err_t err;
  enum duebox_outcome_class cls;
  const char *word; /* NULL: librdkafka tries again, the task is delivered */
};

static const struct fault faults[] = {
    {E(MSG_SIZE_TOO_LARGE), DUEBOX_REJECTED, "kafka.msg_size_too_large"},
    {E(RECORD_LIST_TOO_LARGE), DUEBOX_REJECTED, "kafka.record_list_too_large"},
    {E(INVALID_MSG), DUEBOX_RETRY, "kafka.invalid_msg"},
    {E(INVALID_TIMESTAMP), DUEBOX_UNAVAILABLE, "kafka.invalid_timestamp"},
    {E(UNSUPPORTED_FOR_MESSAGE_FORMAT), DUEBOX_UNAVAILABLE, "kafka.message_format"},
    {E(INVALID_RECORD), DUEBOX_REJECTED, "kafka.invalid_record"},
    {E(POLICY_VIOLATION), DUEBOX_RETRY, "kafka.other"},
    {E(UNKNOWN), DUEBOX_RETRY, "kafka.other"},
    {E(NOT_ENOUGH_REPLICAS), DUEBOX_DELIVERED, NULL},
    {E(NOT_LEADER_FOR_PARTITION), DUEBOX_DELIVERED, NULL},
    {E(REQUEST_TIMED_OUT), DUEBOX_DELIVERED, NULL},
    {E(KAFKA_STORAGE_ERROR), DUEBOX_DELIVERED, NULL},
    {E(_TRANSPORT), DUEBOX_DELIVERED, NULL},
};

static void an_error_hits_its_request_only(void **state) {
  struct kafka_cluster *mock = *state;
  mock->options.delivery_timeout_ms = PATIENT_MS;
  for (size_t f = 0; f < ARRAY_LEN(faults); f++)
    for (size_t hit = 0; hit < 5; hit += 2) {
      struct fake_host *host = open_sink(mock, 100);
      for (size_t i = 0; i < 5; i++) {
        if (i == hit)
          kafka_cluster_fail_produce(mock, faults[f].err, 1);
        send_one_by_one(host, &mock->route, 1);
        if (i == hit)
          check_outcome(host, i, faults[f].cls, faults[f].word);
        else
          check_outcome(host, i, DUEBOX_DELIVERED, NULL);
      }
      fake_host_free(host);
    }
}

/* The error marks the topic inside the client; with a new client the route works again. */
static void topic_authorization_is_the_routes_trouble(void **state) {
  struct kafka_cluster *mock = *state;
  struct fake_host *host = open_sink(mock, 100);
  kafka_cluster_fail_produce(mock, E(TOPIC_AUTHORIZATION_FAILED), 1);
  send_one_by_one(host, &mock->route, 1);
  check_outcome(host, 0, DUEBOX_UNAVAILABLE, "kafka.topic_authorization");
  assert_int_equal(fake_host_outcome(host, 0).scope, DUEBOX_SCOPE_TARGET);
  for (int64_t end = fake_host_now_ms() + LIMIT_MS;
       fake_host_count(host, DUEBOX_DELIVERED) == 0 && fake_host_now_ms() < end;)
    send_one_by_one(host, &mock->route, 1);
  assert_int_equal(fake_host_count(host, DUEBOX_DELIVERED), 1); /* after the right was granted, without a restart */
  fake_host_free(host);
}

static void an_unknown_topic_works_once_it_exists(void **state) {
  struct kafka_cluster *mock = *state;
  struct fake_host *host = open_sink(mock, 100);
  send_one_by_one(host, &mock->missing, 2);
  for (size_t i = 0; i < 2; i++) {
    check_outcome(host, i, DUEBOX_UNAVAILABLE, "kafka.unknown_topic");
    assert_int_equal(fake_host_outcome(host, i).scope, DUEBOX_SCOPE_TARGET);
  }
  rd_kafka_mock_topic_set_error(mock->cluster, "no-such-topic", E(NO_ERROR));
  for (int64_t end = fake_host_now_ms() + LIMIT_MS;
       fake_host_count(host, DUEBOX_DELIVERED) == 0 && fake_host_now_ms() < end; usleep(50000))
    send_one_by_one(host, &mock->missing, 1);
  assert_int_equal(fake_host_count(host, DUEBOX_DELIVERED), 1);
  fake_host_free(host);
}

/* The answer "unknown" is believed only after a while; a delivery_timeout below that must not blame the cluster. */
static void an_unknown_topic_and_a_short_timeout(void **state) {
  struct kafka_cluster *mock = *state;
  kafka_cluster_pass(mock, "topic.metadata.propagation.max.ms", "60000");
  struct fake_host *host = open_sink(mock, 100);
  send_one_by_one(host, &mock->route, 1);
  send_one_by_one(host, &mock->missing, 1);
  check_outcome(host, 1, DUEBOX_UNAVAILABLE, "kafka.unknown_topic");
  assert_int_equal(fake_host_outcome(host, 1).scope, DUEBOX_SCOPE_TARGET);
  fake_host_free(host);
}

static void a_partition_that_does_not_exist(void **state) {
  struct kafka_cluster *mock = *state;
  struct kafka_route route = mock->route;
  route.partition = 77;
  struct fake_host *host = open_sink(mock, 100);
  send_one_by_one(host, &mock->route, 1); /* the topic is known from here on */
  send_one_by_one(host, &route, 1);
  check_outcome(host, 1, DUEBOX_UNAVAILABLE, "kafka.unknown_partition");
  assert_int_equal(fake_host_outcome(host, 1).scope, DUEBOX_SCOPE_TARGET);
  fake_host_free(host);
}

/* --- a refused batch --- */

static void fill_batch(struct kafka_cluster *mock, struct fake_host *host, size_t n) {
  send_one_by_one(host, &mock->route, 1); /* connected, so that the rest leaves as one batch */
  for (size_t i = 0; i < n; i++)
    add(host, &mock->route, "same-partition");
}

static void innocent_neighbours_of_a_refused_record_are_delivered(void **state) {
  struct kafka_cluster *mock = *state;
  kafka_cluster_pass(mock, "linger.ms", "1000"); /* one batch of all 200 */
  mock->options.delivery_timeout_ms = PATIENT_MS;
  static const rd_kafka_resp_err_t whole_batch[] = {E(MSG_SIZE_TOO_LARGE), E(INVALID_RECORD), E(RECORD_LIST_TOO_LARGE),
                                                    E(INVALID_TIMESTAMP), E(INVALID_MSG)};
  for (size_t f = 0; f < ARRAY_LEN(whole_batch); f++) {
    struct fake_host *host = open_sink(mock, 1000);
    fill_batch(mock, host, 200);
    kafka_cluster_fail_produce(mock, whole_batch[f], 1);
    settle(host);
    assert_int_equal(fake_host_logged(host, "KAFKA-BATCH-REFUSED"), 1);
    assert_int_equal(fake_host_count(host, DUEBOX_DELIVERED), 201);
    for (size_t i = 0; i < 201; i++) {
      char id[64];
      snprintf(id, sizeof(id), "%s", fake_host_outcome(host, i).message_id);
      wait_copies(mock, id, 1 + f); /* ids repeat from host to host */
    }
    fake_host_free(host);
  }
}

static void wait_log(struct fake_host *host, const char *id) {
  for (int64_t end = fake_host_now_ms() + LIMIT_MS; fake_host_logged(host, id) == 0; fake_host_poll(host, 1))
    if (fake_host_now_ms() >= end)
      fail_msg("%s was not logged", id);
}

static void the_guilty_record_of_a_batch_is_rejected_alone(void **state) {
  struct kafka_cluster *mock = *state;
  kafka_cluster_pass(mock, "linger.ms", "1000"); /* one batch of all 50 */
  mock->options.delivery_timeout_ms = PATIENT_MS;
  struct fake_host *host = open_sink(mock, 1000);
  fill_batch(mock, host, 50);
  kafka_cluster_fail_produce(mock, E(MSG_SIZE_TOO_LARGE), 2); /* the batch, and the first that goes alone */
  settle(host);
  assert_int_equal(fake_host_logged(host, "KAFKA-BATCH-REFUSED"), 1);
  assert_int_equal(fake_host_count(host, DUEBOX_REJECTED), 1);
  assert_int_equal(fake_host_count(host, DUEBOX_DELIVERED), 50);
  fake_host_free(host);
}

/* --- a broken sequence --- */

static void a_fatal_error_is_survived(void **state) {
  struct kafka_cluster *mock = *state;
  struct fake_host *host = open_sink(mock, 1000);
  fill_batch(mock, host, 100);
  kafka_cluster_fail_produce(mock, E(OUT_OF_ORDER_SEQUENCE_NUMBER), 1);
  int64_t begin = fake_host_now_ms();
  settle(host);
  assert_int_equal(fake_host_logged(host, "KAFKA-FATAL"), 1);
  for (size_t i = 1; i < fake_host_tasks(host); i++) {
    struct fake_outcome outcome = fake_host_outcome(host, i);
    assert_true(outcome.cls == DUEBOX_UNKNOWN || outcome.cls == DUEBOX_UNAVAILABLE || outcome.cls == DUEBOX_DELIVERED);
  }
  size_t before = fake_host_count(host, DUEBOX_DELIVERED);
  send_one_by_one(host, &mock->route, 3);
  assert_int_equal(fake_host_count(host, DUEBOX_DELIVERED), before + 3);
  assert_true(fake_host_now_ms() - begin >= 2000); /* not at once: one new client in five seconds at most */
  assert_int_equal(fake_host_logged(host, "KAFKA-RECREATED"), 1);
  fake_host_free(host);
}

static void stop_during_a_fatal_error_completes_everything(void **state) {
  struct kafka_cluster *mock = *state;
  struct fake_host *host = open_sink(mock, 1000);
  fill_batch(mock, host, 100);
  kafka_cluster_fail_produce(mock, E(OUT_OF_ORDER_SEQUENCE_NUMBER), 1);
  fake_host_offer(host);
  wait_log(host, "KAFKA-FATAL");
  assert_true(fake_host_stop(host, 1000) < 3000);
  fake_host_free(host);
}

static void stop_hands_back_what_was_never_sent(void **state) {
  struct kafka_cluster *mock = *state;
  kafka_cluster_reachable(mock, false);
  struct fake_host *host = open_sink(mock, 100);
  for (size_t i = 0; i < 50; i++)
    add(host, &mock->route, "k");
  fake_host_offer(host);
  fake_host_stop(host, 1000);
  assert_int_equal(fake_host_count(host, DUEBOX_UNAVAILABLE), 50); /* and not UNKNOWN: no attempt is burnt */
  fake_host_free(host);
}

static void a_refused_producer_id_is_waited_out(void **state) {
  struct kafka_cluster *mock = *state;
  rd_kafka_mock_push_request_errors(mock->cluster, KAFKA_CLUSTER_INIT_PRODUCER_ID, 2, E(COORDINATOR_LOAD_IN_PROGRESS),
                                    E(NOT_COORDINATOR));
  mock->options.delivery_timeout_ms = PATIENT_MS;
  struct fake_host *host = open_sink(mock, 100);
  send_one_by_one(host, &mock->route, 3);
  assert_int_equal(fake_host_count(host, DUEBOX_DELIVERED), 3);
  fake_host_free(host);
}

/* --- slow and full --- */

static void a_slow_broker_makes_unknown_not_unavailable(void **state) {
  struct kafka_cluster *mock = *state;
  struct fake_host *host = open_sink(mock, 100);
  send_one_by_one(host, &mock->route, 1);
  rd_kafka_mock_broker_set_rtt(mock->cluster, 1, 7000); /* twice delivery_timeout */
  add(host, &mock->route, "k");
  settle(host);
  check_outcome(host, 1, DUEBOX_UNKNOWN, "kafka.timed_out");
  rd_kafka_mock_broker_set_rtt(mock->cluster, 1, 0);
  wait_copies(mock, fake_host_outcome(host, 1).message_id, 1); /* it had been written indeed */
  fake_host_free(host);
}

static void a_slow_but_bearable_broker_only_delays(void **state) {
  struct kafka_cluster *mock = *state;
  mock->options.delivery_timeout_ms = PATIENT_MS;
  struct fake_host *host = open_sink(mock, 1000);
  rd_kafka_mock_broker_set_rtt(mock->cluster, 1, 300);
  for (size_t i = 0; i < 500; i++)
    add(host, &mock->route, "k");
  settle(host);
  assert_int_equal(fake_host_count(host, DUEBOX_DELIVERED), 500);
  fake_host_free(host);
}

static void a_full_queue_is_not_a_failure(void **state) {
  struct kafka_cluster *mock = *state;
  struct fake_host *host;
  mock->options.delivery_timeout_ms = PATIENT_MS;
  kafka_cluster_pass(mock, "queue.buffering.max.messages", "10");
  rd_kafka_mock_broker_set_rtt(mock->cluster, 1, 100);
  host = open_sink(mock, 1000);
  for (size_t i = 0; i < 60; i++)
    add(host, &mock->route, "k");
  assert_true(fake_host_offer(host) <= 10);
  assert_int_equal(fake_host_offer(host), 0);
  settle(host);
  assert_int_equal(fake_host_count(host, DUEBOX_DELIVERED), 60);
  fake_host_free(host);
}

static void a_dead_cluster_is_the_trouble_of_all_routes(void **state) {
  struct kafka_cluster *mock = *state;
  struct fake_host *host = open_sink(mock, 100);
  send_one_by_one(host, &mock->route, 1);
  kafka_cluster_reachable(mock, false);
  send_one_by_one(host, &mock->route, 1);
  check_outcome(host, 1, DUEBOX_UNAVAILABLE, "kafka.timed_out");
  assert_int_equal(fake_host_outcome(host, 1).scope, DUEBOX_SCOPE_INSTANCE);
  fake_host_free(host);
}

/* A leaderless partition is one topic's trouble as long as others are served. */
static void a_dead_partition_does_not_blame_the_cluster(void **state) {
  struct kafka_cluster *mock = *state;
  struct kafka_route healthy = mock->route, dead = mock->route;
  healthy.partition = 0;
  dead.partition = 1;
  struct fake_host *host = open_sink(mock, 100);
  rd_kafka_mock_partition_set_leader(mock->cluster, "tasks", 1, -1);
  size_t victim = add(host, &dead, "k");
  for (int64_t end = fake_host_now_ms() + LIMIT_MS;
       !fake_host_outcome(host, victim).completed && fake_host_now_ms() < end;) {
    size_t next = add(host, &healthy, "k");
    while (!fake_host_outcome(host, next).completed && fake_host_now_ms() < end) {
      fake_host_offer(host);
      fake_host_poll(host, 10);
    }
    check_outcome(host, next, DUEBOX_DELIVERED, NULL);
    usleep(20000);
  }
  check_outcome(host, victim, DUEBOX_UNAVAILABLE, "kafka.leader_not_available");
  assert_int_equal(fake_host_outcome(host, victim).scope, DUEBOX_SCOPE_TARGET);
  fake_host_free(host);
}

/* --- templates and keys --- */

static const rd_kafka_message_t *record_of(struct kafka_cluster *mock, const char *id) {
  size_t count;
  wait_copies(mock, id, 1);
  const struct contract_message *messages = kafka_cluster_received(mock, &count);
  for (size_t i = 0; i < count; i++)
    if (strcmp(messages[i].id, id) == 0)
      return kafka_cluster_raw(mock, i);
  return NULL;
}

static void keys_are_expanded_and_binary(void **state) {
  struct kafka_cluster *mock = *state;
  struct kafka_route long_key = mock->route, none = mock->route, fixed = mock->route;
  char large[2000];
  memset(large, 'k', sizeof(large));
  long_key.key = "{route}/{task_key}/{priority}";
  none.key = "";
  fixed.partition = 3;
  mock->options.delivery_timeout_ms = PATIENT_MS;
  struct fake_host *host = open_sink(mock, 100);
  const struct fake_task tasks[] = {
      {.message_id = "plain", .key = {"a\0b", 3}, .route_data = &mock->route, .payload = text("1")},
      {.message_id = "long", .key = {large, sizeof(large)}, .route_data = &long_key, .payload = text("2")},
      {.message_id = "none", .key = text("k"), .route_data = &none, .payload = text("3")},
      {.message_id = "empty", .key = text(""), .route_data = &mock->route, .payload = text("4")},
      {.message_id = "fixed", .key = text("k"), .route_data = &fixed, .payload = text("5")},
  };
  for (size_t i = 0; i < ARRAY_LEN(tasks); i++)
    fake_host_add(host, &tasks[i]);
  settle(host);
  assert_int_equal(fake_host_count(host, DUEBOX_DELIVERED), ARRAY_LEN(tasks));
  assert_int_equal(record_of(mock, "plain")->key_len, 3);
  assert_memory_equal(record_of(mock, "plain")->key, "a\0b", 3);
  assert_int_equal(record_of(mock, "long")->key_len, 11 + sizeof(large) + 2);
  assert_memory_equal(record_of(mock, "long")->key, "test.route/kkk", 14);
  assert_null(record_of(mock, "none")->key);
  assert_null(record_of(mock, "empty")->key);
  assert_int_equal(record_of(mock, "fixed")->partition, 3);
  fake_host_free(host);
}

static void topics_are_expanded_or_rejected(void **state) {
  struct kafka_cluster *mock = *state;
  struct kafka_route route = mock->route;
  route.topic = "{header.topic}";
  struct duebox_header good = {"topic", text("tasks")}, bad = {"topic", text("no topic!")};
  mock->options.delivery_timeout_ms = PATIENT_MS;
  struct fake_host *host = open_sink(mock, 100);
  fake_host_add(host,
                &(struct fake_task){.headers = &good, .header_count = 1, .route_data = &route, .payload = text("")});
  fake_host_add(host,
                &(struct fake_task){.headers = &bad, .header_count = 1, .route_data = &route, .payload = text("")});
  fake_host_add(host, &(struct fake_task){.route_data = &route, .payload = text("")});
  settle(host);
  check_outcome(host, 0, DUEBOX_DELIVERED, NULL);
  check_outcome(host, 1, DUEBOX_REJECTED, "kafka.invalid_topic");
  check_outcome(host, 2, DUEBOX_REJECTED, "kafka.invalid_topic");
  fake_host_free(host);
}

static void many_topics_are_learnt_and_forgotten(void **state) {
  struct kafka_cluster *mock = *state;
  struct kafka_route route = mock->route;
  route.topic = "topic-{task_key}";
  mock->options.delivery_timeout_ms = PATIENT_MS;
  struct fake_host *host = open_sink(mock, 1000);
  for (int i = 0; i < 500; i++) {
    char key[16], topic[32];
    snprintf(key, sizeof(key), "%d", i);
    snprintf(topic, sizeof(topic), "topic-%d", i);
    rd_kafka_mock_topic_create(mock->cluster, topic, 1, 1);
    add(host, &route, key);
  }
  settle(host);
  assert_int_equal(fake_host_count(host, DUEBOX_DELIVERED), 500);
  fake_host_free(host);
}

int main(void) {
#define ROW(f) cmocka_unit_test_setup_teardown(f, kafka_cluster_set_up, kafka_cluster_tear_down)
  const struct CMUnitTest tests[] = {
      ROW(an_error_hits_its_request_only),
      ROW(topic_authorization_is_the_routes_trouble),
      ROW(an_unknown_topic_works_once_it_exists),
      ROW(an_unknown_topic_and_a_short_timeout),
      ROW(a_partition_that_does_not_exist),
      ROW(innocent_neighbours_of_a_refused_record_are_delivered),
      ROW(the_guilty_record_of_a_batch_is_rejected_alone),
      ROW(a_fatal_error_is_survived),
      ROW(stop_during_a_fatal_error_completes_everything),
      ROW(stop_hands_back_what_was_never_sent),
      ROW(a_refused_producer_id_is_waited_out),
      ROW(a_slow_broker_makes_unknown_not_unavailable),
      ROW(a_slow_but_bearable_broker_only_delays),
      ROW(a_full_queue_is_not_a_failure),
      ROW(a_dead_cluster_is_the_trouble_of_all_routes),
      ROW(a_dead_partition_does_not_blame_the_cluster),
      ROW(keys_are_expanded_and_binary),
      ROW(topics_are_expanded_or_rejected),
      ROW(many_topics_are_learnt_and_forgotten),
  };
#undef ROW
  cmocka_set_test_filter(getenv("DUEBOX_TEST_ONLY"));
  return cmocka_run_group_tests_name("kafka faults", tests, NULL, NULL);
}
