/* SPDX-License-Identifier: MIT
 *
 * tests/support/kafka_cluster.h - a Kafka cluster for tests of plugins/kafka, and a look into its topics.
 *
 * Either librdkafka's mock inside the test process, where faults are injected, or a real broker that
 * tests/integration/test_kafka_plugin.py has started and hurts on request: a line "@<what>" on stdout is done to it and
 * answered with "done" on stdin.
 *
 * Each opening has a topic for tasks with 4 partitions and one for results with 2; "no-such-topic" does not exist.
 */
#ifndef TESTS_SUPPORT_KAFKA_CLUSTER_H
#define TESTS_SUPPORT_KAFKA_CLUSTER_H

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#include <duebox/plugin.h>

#include "plugins/kafka/kafka_options.h"
#include "tests/contract/sink_contract.h"

#define KAFKA_CLUSTER_PRODUCE 0 /* ApiKeys of the Kafka protocol */
#define KAFKA_CLUSTER_OFFSET_COMMIT 8
#define KAFKA_CLUSTER_FIND_COORDINATOR 10
#define KAFKA_CLUSTER_JOIN_GROUP 11
#define KAFKA_CLUSTER_INIT_PRODUCER_ID 22

#define KAFKA_CLUSTER_PASSED 8

struct kafka_cluster {
  rd_kafka_t *rk;                   /* owns the mock, creates topics, publishes results */
  rd_kafka_mock_cluster_t *cluster; /* NULL: a real broker */
  rd_kafka_t *reader;
  size_t published;
  struct duebox_pair passed[KAFKA_CLUSTER_PASSED]; /* room for the rdkafka map */
  struct duebox_pair breaking;
  char tasks[40], answers[40];
  const char *bootstrap;
  struct kafka_options options;
  struct kafka_options broken;
  struct kafka_route route;
  struct kafka_route missing;
  struct kafka_results results;
  rd_kafka_message_t **raw; /* what the reader has seen */
  struct contract_message *seen;
  size_t seen_count, seen_cap;
};

struct kafka_cluster *kafka_cluster_open_mock(void);
/* The broker that DUEBOX_TEST_KAFKA_BOOTSTRAP names. topic_config: one property of the task topic, or NULL. */
struct kafka_cluster *kafka_cluster_open_real(const char *topic_config, const char *value);
void kafka_cluster_close(struct kafka_cluster *cluster);
/* Set-up and tear-down of a cmocka test whose state is a mock. */
int kafka_cluster_set_up(void **state);
int kafka_cluster_tear_down(void **state);
void kafka_cluster_reachable(struct kafka_cluster *cluster, bool up);
/* Has something done to the real broker: "kill", "start", "pause", "resume". */
void kafka_cluster_ask(const char *what);
/* One more property of the rdkafka map. */
void kafka_cluster_pass(struct kafka_cluster *cluster, const char *key, const char *value);
/* Everything the task topic holds, in the order seen. Comes a little later than the acknowledgement. */
const struct contract_message *kafka_cluster_received(struct kafka_cluster *cluster, size_t *count);
/* The record behind a message of kafka_cluster_received(). */
const rd_kafka_message_t *kafka_cluster_raw(struct kafka_cluster *cluster, size_t index);
/* Writes to the result topic, to its partitions in turn; returns when it is acknowledged. */
void kafka_cluster_publish(struct kafka_cluster *cluster, const char *body, size_t len);
/* Writes a batch of so many records that says it is packed with gzip and is not, to the next partition of the result
 * topic. Mock only. */
void kafka_cluster_publish_unreadable(struct kafka_cluster *cluster, uint32_t records);
/* Writes a batch of one record that claims to be so far behind its batch's first offset, to the next partition of the
 * result topic. Mock only. */
void kafka_cluster_publish_claiming(struct kafka_cluster *cluster, int64_t delta, const char *body);
/* The next `count` produce requests are answered with this error. Mock only. */
void kafka_cluster_fail_produce(struct kafka_cluster *cluster, rd_kafka_resp_err_t err, size_t count);

#endif
