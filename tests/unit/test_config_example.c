/* SPDX-License-Identifier: MIT
 *
 * tests/unit/test_config_example.c - the configuration of the public contract, word for word, with the real plugins.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "config_fixture.h"

static const char example[] =
    "database: {host: 127.0.0.1, port: 3306, user: duebox, password_file: db.secret, name: shop, table: outbox}   # or "
    "socket:\n"
    "plugins:\n"
    "  bus:    {module: kafka, brokers: \"127.0.0.1:9092\", rdkafka: {compression.type: lz4}}\n"
    "  rabbit: {module: amqp, url: \"amqp://guest@127.0.0.1:5672/%2f\", password_file: mq.secret}\n"
    "  hooks:  {module: http, allow_private: false}\n"
    "routes:\n"
    "  orders.cancel: {via: bus, topic: orders-cancel, key: \"{task_key}\"}\n"
    "  invoice.send:  {via: rabbit, exchange: \"\", routing_key: invoices, result: expected, timeout: 15m,\n"
    "                  retry: {levels: [5s, 30s, 1m, 10m, 30m, 1h, 6h, 1d, 2d], jitter: 0.2}, max_attempts: 10}\n"
    "  crm.push:      {via: hooks, url: \"https://crm.example/hooks/{route}\", secret_file: crm.whsec,\n"
    "                  concurrency: 32, rate: 100/s, retry: {backoff: 10s, multiplier: 2, max: 1h}, history: 30d}\n"
    "results:\n"
    "  - {via: bus, topic: duebox-results, group: duebox}\n"
    "  - {via: rabbit, queue: duebox-results}\n"
    "alerts: {dead: {route: ops.alert}}          # an alert is a task on a route like any other\n"
    "admin: {listen: \"127.0.0.1:8321\", token_file: admin.token}\n";

static void test_example(void **state) {
  struct config_fixture f;
  struct err err = {0};
  assert_int_equal(config_set_up(&f), 0);
  config_write(&f, "duebox.yaml", example, 0644);
  config_write(&f, "db.secret", "geheim\n", 0600);
  config_write(&f, "mq.secret", "guest\n", 0600);
  config_write(&f, "crm.whsec", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n", 0600);
  config_write(&f, "admin.token", "0123456789abcdef0123456789abcdef\n", 0600);
  struct config *config = config_try(&f, &err);
  if (!config) {
    config_tear_down(&f);
    fail_msg("%s", err.text);
  }
  const struct route_config *invoice = config_route(config, "invoice.send", 12);
  assert_string_equal(invoice->plugin->module->name, "amqp");
  assert_string_equal(invoice->reply_to, "duebox-results");
  assert_int_equal(invoice->timeout_ms, 15 * 60000);
  assert_string_equal(config->sources[0].name, "bus#1");
  assert_string_equal(config->dead_alert->name, "ops.alert");
  assert_int_equal(config->route_count, 3);
  config_free(&config);
  config_tear_down(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_example)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
