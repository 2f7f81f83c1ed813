/* SPDX-License-Identifier: MIT
 *
 * tests/contract/test_amqp_contract.c - the two contract suites, run with the amqp plugin against a real broker.
 *
 * The plugin goes through a relay that makes the broker vanish or fall silent. Without DUEBOX_TEST_AMQP_URL nothing is
 * tested, and that is said. tests/integration/test_amqp_plugin.py starts a broker and sets it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/contract/amqp_broker.h"
#include "tests/contract/sink_contract.h"
#include "tests/contract/source_contract.h"

extern const struct duebox_plugin duebox_plugin_v1;

static void *open_broker(void) { return amqp_broker_open(); }
static void close_broker(void *fixture) { amqp_broker_close(fixture); }
static const void *options(void *fixture) { return amqp_broker_options(fixture); }
static const void *route(void *fixture) { return amqp_broker_route(fixture); }
static const void *source(void *fixture) { return amqp_broker_source(fixture); }
static void publish(void *fixture, const char *body, size_t len) { amqp_broker_publish(fixture, body, len); }
static void reachable(void *fixture, bool up) { tcp_relay_reachable(amqp_broker_relay(fixture), up); }
static void hold(void *fixture, bool held) { tcp_relay_mute(amqp_broker_relay(fixture), held); }

static const struct contract_message *received(void *fixture, size_t *count) {
  return amqp_broker_received(fixture, count);
}

/* An exchange that does not exist closes the channel: the hard way not to be there. */
static const void *missing_route(void *fixture) {
  static struct amqp_route missing;
  missing = *amqp_broker_route(fixture);
  missing.exchange = "duebox-test-no-such-exchange";
  return &missing;
}

static const void *broken_options(void *fixture) {
  static struct amqp_options broken;
  broken = *amqp_broker_options(fixture);
  broken.url = "http://127.0.0.1/";
  return &broken;
}

int main(void) {
  if (!amqp_broker_url())
    return amqp_broker_skip_all("amqp contract");
  const struct sink_contract sink = {
      .plugin = &duebox_plugin_v1,
      .max_payload = 4 << 20,
      .unavailable_ms = 15000,
      .open = open_broker,
      .close = close_broker,
      .options = options,
      .route = route,
      .missing_route = missing_route,
      .broken_options = broken_options,
      .reachable = reachable,
      .hold = hold,
      .received = received,
  };
  const struct source_contract results = {
      .plugin = &duebox_plugin_v1,
      .ready_ms = 15000,
      .big_records = true,
      .open = open_broker,
      .close = close_broker,
      .options = options,
      .source = source,
      .publish = publish,
      .reachable = reachable,
  };
  int failed = sink_contract_run("amqp sink", &sink);
  return failed + source_contract_run("amqp source", &results);
}
