/* SPDX-License-Identifier: MIT
 *
 * tests/unit/test_config_example.c - the configuration of the public contract, word for word, with the real plugins.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
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

static void expect_hidden(const struct config *config, bool json) {
  char *text = config_shown(config, json);
  if (strstr(text, "geheim") || strstr(text, "4711") || strstr(text, "47.11"))
    fail_msg("shown:\n%s", text);
  assert_non_null(strstr(text, "crm.example/open"));
  assert_non_null(strstr(text, json ? "\"X-Shop\": \"7\"" : "X-Shop: 7"));
  assert_non_null(strstr(text, json ? "\"X-Api-Key\": \"***\"" : "X-Api-Key: \"***\""));
  assert_non_null(strstr(text, json ? "\"url\": \"***\"" : "url: \"***\""));
  free(text);
}

/* `config show` is pasted into tickets. A value that was kept out of the file, in the environment or in a file of its
 * own, is not printed, whatever its key, its type, or its place in a list or a map; nor is a secret header. */
static void test_hidden(void **state) {
  static const char text[] =
      "database: {user: duebox, password_file: db.secret, name: shop}\n"
      "plugins:\n"
      "  hooks: {module: http, user_agent: \"a ${SECRET}\", allow_networks: [10.1.0.0/16, \"10.${NUMBER}.0/24\"]}\n"
      "routes:\n"
      "  a: {via: hooks, url_file: crm.url, headers: {X-Shop: 7, X-Env: \"${SECRET}\"},\n"
      "      secret_headers: {X-Api-Key: geheim, X-Other: \"${SECRET}\"}, retry: {levels: \"1s, ${NUMBER2}s\"}}\n"
      "  b: {via: hooks, url: \"https://crm.example/open\", secret_headers_file: {X-Api-Key: api.key},\n"
      "      concurrency: \"${NUMBER2}\"}\n"
      "  c: {via: hooks, url: \"https://crm.example/${SECRET}\"}\n";
  struct config_fixture f;
  struct err err = {0};
  assert_int_equal(config_set_up(&f), 0);
  setenv("SECRET", "geheim", 1);
  setenv("NUMBER", "47.11", 1);
  setenv("NUMBER2", "4711", 1);
  config_write(&f, "duebox.yaml", text, 0600);
  config_write(&f, "db.secret", "geheim\n", 0600);
  config_write(&f, "crm.url", "https://crm.example/geheim?task={task_key}\n", 0600);
  config_write(&f, "api.key", "geheim\n", 0600);
  struct config *config = config_try(&f, &err);
  if (!config)
    fail_msg("%s", err.text);
  expect_hidden(config, false);
  expect_hidden(config, true);
  assert_true(config_route(config, "a", 1)->many_targets); /* a URL from a file is a template as any other */
  config_free(&config);
  config_tear_down(&f);
}

static void test_wrong_files(void **state) {
  static const struct {
    const char *keys, *why;
  } rows[] = {
      {"{via: hooks, url_file: bad.url}", "url: it must begin with https://"}, /* and the secret is not quoted */
      {"{via: hooks, url_file: none.url}", "none.url"},
      {"{via: hooks, url_file: brace.url}", "{"},
      {"{via: hooks, url_file: crm.url, url: \"https://crm.example/\"}", "keep one of the two"},
      {"{via: hooks}", "\"url\" or \"url_file\" must be given"},
      {"{via: hooks, url_file: crm.url, secret_headers_file: api.key}", "must be a map"},
      {"{via: hooks, url_file: crm.url, secret_headers_file: {X-A: [api.key]}}", "must be one value"},
      {"{via: hooks, url_file: crm.url, secret_headers: {X-A: 1}, headers: {x-a: 2}}", "keep one of the two"},
      {"{via: hooks, url_file: crm.url, secret_headers: {host: x}}", "secret_headers: host"},
  };
  struct config_fixture f;
  assert_int_equal(config_set_up(&f), 0);
  config_write(&f, "crm.url", "https://crm.example/x\n", 0600);
  config_write(&f, "bad.url", "crm.example/geheim\n", 0600);
  config_write(&f, "brace.url", "https://crm.example/{geheim\n", 0600);
  config_write(&f, "api.key", "k\n", 0600);
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    char text[600];
    struct err err = {0};
    snprintf(text, sizeof text,
             "database: {user: u, password: p, name: s}\nplugins: {hooks: {module: http}}\nroutes: {a: %s}\n",
             rows[i].keys);
    config_write(&f, "duebox.yaml", text, 0600);
    struct config *config = config_try(&f, &err);
    if (config || !strstr(err.text, rows[i].why) || strstr(err.text, "geheim"))
      fail_msg("%s: %s", rows[i].keys, config ? "accepted" : err.text);
  }
  config_tear_down(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_example), cmocka_unit_test(test_hidden),
                                     cmocka_unit_test(test_wrong_files)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
