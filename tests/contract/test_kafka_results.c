/* SPDX-License-Identifier: MIT
 *
 * tests/contract/test_kafka_results.c - the faults that only a Kafka source has, injected into a mock cluster: commits,
 * rebalances, batches that nobody can read, and whatever keeps a member from reading its topic.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>

#include "tests/support/fake_host.h"
#include "tests/support/kafka_cluster.h"

#define LIMIT_MS 30000
#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define E(name) RD_KAFKA_RESP_ERR_##name

extern const struct duebox_plugin duebox_plugin_v1;

static struct fake_host *open_source(struct kafka_cluster *mock) {
  return fake_host_open(&(struct fake_host_config){
      .plugin = &duebox_plugin_v1,
      .role = DUEBOX_ROLE_SOURCE,
      .options = &mock->options,
      .source = &mock->results,
  });
}

static void wait_log(struct fake_host *host, const char *id) {
  for (int64_t end = fake_host_now_ms() + LIMIT_MS; fake_host_logged(host, id) == 0; fake_host_poll(host, 1))
    if (fake_host_now_ms() >= end)
      fail_msg("%s was not logged", id);
}

static void wait_results(struct fake_host *host, size_t count) {
  if (!fake_host_wait_results(host, count, 2 * LIMIT_MS)) /* joining a group takes some of it */
    fail_msg("%zu of %zu records came", fake_host_results(host), count);
}

static void a_failed_commit_is_tried_again(void **state) {
  struct kafka_cluster *mock = *state;
  for (int i = 0; i < 10; i++)
    kafka_cluster_publish(mock, "x", 1);
  struct fake_host *host = open_source(mock);
  wait_results(host, 10);
  rd_kafka_mock_push_request_errors(mock->cluster, KAFKA_CLUSTER_OFFSET_COMMIT, 1, E(GROUP_AUTHORIZATION_FAILED));
  for (size_t i = 0; i < 10; i++)
    fake_host_ack(host, i, true);
  wait_log(host, "KAFKA-COMMIT-FAILED");
  fake_host_stop(host, 5000);
  fake_host_free(host);
  host = open_source(mock);
  kafka_cluster_publish(mock, "last", 4);
  wait_results(host, 1);
  assert_string_equal(fake_host_result(host, 0).body, "last");
  fake_host_free(host);
}

/* The second member takes partitions from the first, which still has records open; acknowledging them late must
 * neither fail nor move an offset that is not ours any more. */
static void late_acks_after_a_rebalance_are_ignored(void **state) {
  struct kafka_cluster *mock = *state;
  for (int i = 0; i < 10; i++)
    kafka_cluster_publish(mock, "x", 1);
  struct fake_host *first = open_source(mock);
  wait_results(first, 10);
  struct fake_host *second = open_source(mock);
  for (int64_t end = fake_host_now_ms() + LIMIT_MS; fake_host_results(second) < 5 && fake_host_now_ms() < end;) {
    fake_host_poll(first, 20);
    fake_host_poll(second, 20);
  }
  assert_true(fake_host_results(second) >= 5);
  for (size_t i = 0; i < 10; i++)
    fake_host_ack(first, i, true);
  for (int i = 0; i < 10; i++)
    fake_host_poll(first, 20);
  fake_host_stop(first, 3000);
  fake_host_free(first);
  fake_host_free(second);
  struct fake_host *third = open_source(mock);
  wait_results(third, 10); /* late acks moved nothing, not even for a partition that came back to the first */
  fake_host_free(third);
}

static void a_result_topic_that_comes_later(void **state) {
  struct kafka_cluster *mock = *state;
  rd_kafka_mock_topic_set_error(mock->cluster, "results", E(UNKNOWN_TOPIC_OR_PART));
  struct fake_host *host = open_source(mock);
  for (int64_t end = fake_host_now_ms() + LIMIT_MS; fake_host_health(host) != 0 && fake_host_now_ms() < end;)
    fake_host_poll(host, 20);
  assert_int_equal(fake_host_health(host), 0);
  rd_kafka_mock_topic_set_error(mock->cluster, "results", E(NO_ERROR));
  kafka_cluster_publish(mock, "x", 1);
  wait_results(host, 1);
  assert_int_equal(fake_host_health(host), 1);
  fake_host_free(host);
}

/* --- a source that is not read --- */

static bool wait_unread(struct fake_host *host, const char *part) {
  for (int64_t end = fake_host_now_ms() + LIMIT_MS; !fake_host_unread(host, part) && fake_host_now_ms() < end;)
    fake_host_poll(host, 20);
  return fake_host_unread(host, part);
}

static void refuse_joins(struct kafka_cluster *mock, rd_kafka_resp_err_t err) {
  for (int i = 0; i < 100; i++)
    rd_kafka_mock_push_request_errors(mock->cluster, KAFKA_CLUSTER_JOIN_GROUP, 1, err);
}

/* The client asks to join again for ever; what the coordinator says to that must not stay inside it. */
static void a_group_that_refuses_us_is_told(void **state) {
  static const struct {
    rd_kafka_resp_err_t err;
    const char *cure;
  } rows[] = {
      {E(INVALID_SESSION_TIMEOUT), "session.timeout.ms"}, {E(GROUP_AUTHORIZATION_FAILED), "ACLs"},
      {E(GROUP_MAX_SIZE_REACHED), "group.max.size"},      {E(INCONSISTENT_GROUP_PROTOCOL), "a group of its own"},
      {E(POLICY_VIOLATION), "Policy violation"}, /* one that nobody thought of */
  };
  struct kafka_cluster *mock = *state;
  for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
    refuse_joins(mock, rows[i].err);
    struct fake_host *host = open_source(mock);
    if (!wait_unread(host, rows[i].cure))
      fail_msg("%s: nothing is said of %s", rd_kafka_err2name(rows[i].err), rows[i].cure);
    assert_int_equal(fake_host_logged(host, "KAFKA-DOWN"), 1);
    rd_kafka_mock_clear_request_errors(mock->cluster, KAFKA_CLUSTER_JOIN_GROUP);
    kafka_cluster_publish(mock, "x", 1);
    wait_results(host, i + 1); /* none is acknowledged */
    assert_int_equal(fake_host_health(host), 1);
    fake_host_stop(host, 5000);
    fake_host_free(host);
  }
}

static void a_coordinator_that_is_never_found_is_told(void **state) {
  struct kafka_cluster *mock = *state;
  for (int n = 0; n < 1000; n++)
    rd_kafka_mock_push_request_errors(mock->cluster, KAFKA_CLUSTER_FIND_COORDINATOR, 1, E(COORDINATOR_NOT_AVAILABLE));
  struct fake_host *host = open_source(mock);
  assert_true(wait_unread(host, "no coordinator"));
  fake_host_free(host);
}

/* Who waits for its brokers has that to say, and nothing else. */
static void brokers_that_are_away_are_not_a_refusal(void **state) {
  struct kafka_cluster *mock = *state;
  refuse_joins(mock, E(GROUP_MAX_SIZE_REACHED));
  struct fake_host *host = open_source(mock);
  assert_true(wait_unread(host, "group.max.size"));
  kafka_cluster_reachable(mock, false);
  for (int64_t end = fake_host_now_ms() + LIMIT_MS; fake_host_unread(host, "") && fake_host_now_ms() < end;)
    fake_host_poll(host, 20);
  assert_false(fake_host_unread(host, ""));
  assert_int_equal(fake_host_health(host), 0);
  rd_kafka_mock_clear_request_errors(mock->cluster, KAFKA_CLUSTER_JOIN_GROUP);
  kafka_cluster_reachable(mock, true);
  kafka_cluster_publish(mock, "x", 1);
  wait_results(host, 1);
  assert_int_equal(fake_host_health(host), 1);
  fake_host_free(host);
}

static struct fake_result result_from(struct fake_host *host, const char *origin) {
  for (size_t i = 0; i < fake_host_results(host); i++) {
    struct fake_result result = fake_host_result(host, i);
    if (strcmp(result.origin, origin) == 0)
      return result;
  }
  fail_msg("no result has come from %s", origin);
  return (struct fake_result){0};
}

/* Whoever may write to a result topic can write a batch that librdkafka does not unpack, which it reads again and
 * again. What comes behind it is read all the same, and a note is kept of what was passed over. */
static void a_batch_that_cannot_be_unpacked_blocks_nothing(void **state) {
  struct kafka_cluster *mock = *state;
  kafka_cluster_publish(mock, "before", 6);
  kafka_cluster_publish(mock, "beside", 6);
  kafka_cluster_publish_unreadable(mock, 3);
  kafka_cluster_publish(mock, "beside", 6);
  kafka_cluster_publish(mock, "behind", 6);
  struct fake_host *host = open_source(mock);
  wait_results(host, 5);
  assert_int_equal(fake_host_logged(host, "KAFKA-RECORD-UNREADABLE"), 1);
  struct fake_result note = result_from(host, "results[0]@1"), last = result_from(host, "results[0]@4");
  assert_true(note.truncated && note.len == 0);
  assert_string_equal(last.body, "behind");
  for (size_t i = 0; i < 5; i++)
    fake_host_ack(host, i, true);
  fake_host_stop(host, 5000);
  fake_host_free(host);
  host = open_source(mock); /* it does not come again */
  kafka_cluster_publish(mock, "beside", 6);
  kafka_cluster_publish(mock, "later", 5);
  wait_results(host, 2);
  assert_string_equal(result_from(host, "results[0]@5").body, "later");
  assert_int_equal(fake_host_logged(host, "KAFKA-RECORD-UNREADABLE"), 0);
  fake_host_free(host);
}

/* However many records a batch says it has, getting past it takes some steps only: each costs a refused fetch. */
static void a_batch_of_many_that_cannot_be_unpacked_blocks_nothing(void **state) {
  struct kafka_cluster *mock = *state;
  kafka_cluster_publish_unreadable(mock, 100000);
  kafka_cluster_publish(mock, "beside", 6);
  kafka_cluster_publish(mock, "behind", 6);
  struct fake_host *host = open_source(mock);
  wait_results(host, 3);
  assert_string_equal(result_from(host, "results[0]@100000").body, "behind");
  for (size_t i = 0; i < 3; i++)
    fake_host_ack(host, i, true);
  fake_host_free(host);
}

/* One such batch after the other costs the patience that one is given once. */
static void batches_that_cannot_be_unpacked_share_one_patience(void **state) {
  struct kafka_cluster *mock = *state;
  for (int i = 0; i < 40; i++)
    kafka_cluster_publish_unreadable(mock, 3);
  kafka_cluster_publish(mock, "behind", 6);
  struct fake_host *host = open_source(mock);
  wait_results(host, 41);
  assert_string_equal(result_from(host, "results[0]@60").body, "behind");
  fake_host_free(host);
}

/* A producer writes into a record where it is within its batch, and not every broker looks. The client believes it,
 * and goes on behind: where nothing is. */
static void a_record_that_claims_to_be_beyond_the_log_blocks_nothing(void **state) {
  struct kafka_cluster *mock = *state;
  kafka_cluster_publish(mock, "before", 6);
  kafka_cluster_publish(mock, "beside", 6);
  struct fake_host *host = open_source(mock);
  wait_results(host, 2);
  for (int i = 0; i < 3; i++) {
    kafka_cluster_publish_claiming(mock, INT64_C(2000000000) + i, "odd");
    kafka_cluster_publish(mock, "beside", 6);
  }
  wait_results(host, 8);
  assert_string_equal(result_from(host, "results[0]@1").body, "odd"); /* where it is */
  assert_string_equal(result_from(host, "results[0]@3").body, "odd");
  kafka_cluster_publish(mock, "behind", 6);
  wait_results(host, 9);
  assert_string_equal(result_from(host, "results[0]@4").body, "behind");
  for (size_t i = 0; i < 9; i++)
    fake_host_ack(host, i, true);
  fake_host_stop(host, 5000);
  fake_host_free(host);
  host = open_source(mock); /* nothing comes again, and what comes later is read */
  kafka_cluster_publish(mock, "beside", 6);
  kafka_cluster_publish(mock, "later", 5);
  wait_results(host, 2);
  assert_string_equal(result_from(host, "results[0]@5").body, "later");
  fake_host_free(host);
}

int main(void) {
#define ROW(f) cmocka_unit_test_setup_teardown(f, kafka_cluster_set_up, kafka_cluster_tear_down)
  const struct CMUnitTest tests[] = {
      ROW(a_failed_commit_is_tried_again),
      ROW(late_acks_after_a_rebalance_are_ignored),
      ROW(a_result_topic_that_comes_later),
      ROW(a_group_that_refuses_us_is_told),
      ROW(a_coordinator_that_is_never_found_is_told),
      ROW(brokers_that_are_away_are_not_a_refusal),
      ROW(a_batch_that_cannot_be_unpacked_blocks_nothing),
      ROW(a_batch_of_many_that_cannot_be_unpacked_blocks_nothing),
      ROW(batches_that_cannot_be_unpacked_share_one_patience),
      ROW(a_record_that_claims_to_be_beyond_the_log_blocks_nothing),
  };
#undef ROW
  cmocka_set_test_filter(getenv("DUEBOX_TEST_ONLY"));
  return cmocka_run_group_tests_name("kafka results", tests, NULL, NULL);
}
