/* SPDX-License-Identifier: MIT
 *
 * tests/contract/test_kafka_contract.c - the contract suites against plugins/kafka.
 *
 * With a mock cluster as destination; with a real broker when DUEBOX_TEST_KAFKA_BOOTSTRAP names one
 * (tests/integration/test_kafka_plugin.py starts it).
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <setjmp.h>

#include <cmocka.h>

#include "tests/contract/sink_contract.h"
#include "tests/contract/source_contract.h"
#include "tests/support/kafka_cluster.h"

enum {
  DELIVERY_MS = 8000, /* delivery_timeout: more than a busy machine needs for a first delivery */
  HELD_MS = 3000,     /* a mock broker cannot wait until it is told */
};

extern const struct duebox_plugin duebox_plugin_v1;

static bool is_real(void) { return getenv("DUEBOX_TEST_KAFKA_BOOTSTRAP") != NULL; }

static void *open_cluster(void) {
  struct kafka_cluster *cluster = is_real() ? kafka_cluster_open_real(NULL, NULL) : kafka_cluster_open_mock();
  cluster->options.delivery_timeout_ms = DELIVERY_MS;
  return cluster;
}

static void close_cluster(void *cluster) { kafka_cluster_close(cluster); }
static const void *options(void *cluster) { return &((struct kafka_cluster *)cluster)->options; }
static const void *broken_options(void *cluster) { return &((struct kafka_cluster *)cluster)->broken; }
static const void *route(void *cluster) { return &((struct kafka_cluster *)cluster)->route; }
static const void *missing_route(void *cluster) { return &((struct kafka_cluster *)cluster)->missing; }
static const void *source(void *cluster) { return &((struct kafka_cluster *)cluster)->results; }
static void reachable(void *cluster, bool up) { kafka_cluster_reachable(cluster, up); }

static void hold(void *fixture, bool held) {
  struct kafka_cluster *cluster = fixture;
  if (cluster->cluster)
    rd_kafka_mock_broker_set_rtt(cluster->cluster, -1, held ? HELD_MS : 0);
  else
    kafka_cluster_ask(held ? "pause" : "resume");
}

static const struct contract_message *received(void *cluster, size_t *count) {
  return kafka_cluster_received(cluster, count);
}

static void publish(void *cluster, const char *body, size_t len) { kafka_cluster_publish(cluster, body, len); }

int main(void) {
  const struct sink_contract sink = {
      .plugin = &duebox_plugin_v1,
      .max_payload = 900000,
      .unavailable_ms = DELIVERY_MS + 12000,
      .open = open_cluster,
      .close = close_cluster,
      .options = options,
      .route = route,
      .missing_route = missing_route,
      .broken_options = broken_options,
      .reachable = reachable,
      .hold = hold,
      .held_ms = is_real() ? 0 : HELD_MS,
      .received = received,
  };
  const struct source_contract results = {
      .plugin = &duebox_plugin_v1,
      .ready_ms = 20000,
      .full_ms = 2000,
      .big_records = true,
      .open = open_cluster,
      .close = close_cluster,
      .options = options,
      .source = source,
      .publish = publish,
      .reachable = reachable,
  };
  int failed = sink_contract_run("kafka sink", &sink);
  return failed + source_contract_run("kafka source", &results);
}
