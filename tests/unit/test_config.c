/* SPDX-License-Identifier: MIT
 *
 * tests/unit/test_config.c - what a good configuration becomes: values, defaults, drop-ins, secrets, reloading.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "config_fixture.h"
#include "core/base/log.h"

#define DB "database: {user: duebox, name: shop}\n"
#define BUS DB "plugins: {bus: {module: \"null\"}}\n"

static int set_up(void **state) {
  struct config_fixture *f = calloc(1, sizeof *f);
  *state = f;
  return f ? config_set_up(f) : -1;
}

static int tear_down(void **state) {
  config_tear_down(*state);
  free(*state);
  return 0;
}

static struct config *load(const struct config_fixture *f, const char *yaml) {
  struct err err = {0};
  config_write(f, "duebox.yaml", yaml, 0600);
  struct config *config = config_try(f, &err);
  if (!config)
    fail_msg("%s", err.text);
  return config;
}

static const struct route_config *route(const struct config *config, const char *name) {
  const struct route_config *found = config_route(config, name, strlen(name));
  assert_non_null(found);
  assert_string_equal(found->name, name);
  return found;
}

static bool near(double a, double b) { return fabs(a - b) < 1e-12; }

static void test_defaults(void **state) {
  struct config *config = load(*state, DB);
  const struct database_config *db = &config->database;
  assert_string_equal(db->host, "127.0.0.1");
  assert_int_equal(db->port, 3306);
  assert_null(db->socket);
  assert_string_equal(db->password, "");
  assert_string_equal(db->table, "outbox");
  assert_false(db->tls);
  assert_int_equal(db->connect_timeout_ms, 5000);
  assert_int_equal(db->read_timeout_ms, 30000);
  assert_null(db->migrate_user);
  const struct engine_config *engine = &config->engine;
  assert_true(engine->instance[0]);
  assert_int_equal(engine->lease_ms, 10000);
  assert_int_equal(engine->poll_min_ms, 5);
  assert_int_equal(engine->poll_max_ms, 100);
  assert_int_equal(engine->poll_mode, POLL_FIXED_DELAY);
  assert_int_equal(engine->batch, 2000);
  assert_int_equal(engine->max_payload, 1 << 20);
  assert_int_equal(engine->max_record, 256 << 10);
  assert_int_equal(engine->settle_rows, 1000);
  assert_int_equal(engine->settle_delay_ms, 2);
  assert_int_equal(engine->drain_timeout_ms, 30000);
  assert_int_equal(engine->dead_retention_ms, INT64_C(30) * 86400000);
  assert_int_equal(engine->attempts_retention_ms, INT64_C(7) * 86400000);
  assert_int_equal(engine->max_recoveries, 3);
  assert_string_equal(config->admin.host, "127.0.0.1");
  assert_int_equal(config->admin.port, 8321);
  assert_string_equal(config->admin.url, "http://127.0.0.1:8321");
  assert_null(config->admin.token);
  assert_int_equal(config->log.level, LOG_LEVEL_INFO);
  assert_int_equal(config->log.format, LOG_FORMAT_AUTO);
  assert_int_equal(config->route_count + config->plugin_count + config->source_count, 0);
  assert_null(config->dead_alert);
  config_free(&config);
  assert_null(config);
}

static void test_route_defaults(void **state) {
  static const int64_t levels[] = {5000, 30000, 60000, 600000, 1800000, 3600000, 21600000, 86400000, 172800000};
  struct config *config = load(*state, BUS "routes: {a: {via: bus}}\n");
  const struct route_config *a = route(config, "a");
  assert_ptr_equal(a->plugin, &config->plugins[0]);
  assert_int_equal(a->claim, CLAIM_MEMORY);
  assert_int_equal(a->result, RESULT_NONE);
  assert_int_equal(a->timeout_ms, 30000);
  assert_int_equal(a->retry.level_count, 9);
  assert_memory_equal(a->retry.levels_ms, levels, sizeof levels);
  assert_true(near(a->retry.jitter, 0.2));
  assert_int_equal(a->retry.max_ms, 0);
  assert_int_equal(a->retry.max_attempts, 10);
  assert_int_equal(a->give_up_ms, INT64_C(7) * 86400000);
  assert_int_equal(a->concurrency, 10000);
  assert_int_equal(a->inflight_bytes, 16 << 20);
  assert_true(near(a->rate, 0));
  assert_int_equal(a->history_ms, 0);
  assert_false(a->every_attempt);
  assert_null(a->reply_to);
  assert_int_equal(config->plugins[0].max_inflight, 10000);
  config_free(&config);
}

/* What rows may ask for in the place of the route's time-out has a bound, which is never below that. */
static void test_timeout_max(void **state) {
  static const struct {
    const char *keys;
    int64_t most_ms;
  } rows[] = {{"", 300000},
              {", timeout: 1s", 300000},
              {", timeout: 31s", 310000},
              {", timeout: 30d", INT64_C(30) * 86400000},
              {", timeout: 4d", INT64_C(30) * 86400000},
              {", timeout: 1m, timeout_max: 1h", 3600000},
              {", timeout: 1m, timeout_max: 1s", 60000}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    char text[256];
    snprintf(text, sizeof text, BUS "routes: {a: {via: bus%s}}\n", rows[i].keys);
    struct config *config = load(*state, text);
    const struct route_config *a = route(config, "a");
    assert_int_equal(route_timeout_most_ms(a), rows[i].most_ms);
    assert_int_equal(route_attempt_ms(a, 0), a->timeout_ms);
    assert_int_equal(route_attempt_ms(a, 20), 20);
    assert_int_equal(route_attempt_ms(a, UINT32_MAX), rows[i].most_ms);
    config_free(&config);
  }
}

static void test_long_calls(void **state) {
  struct config *config =
      load(*state, DB "plugins: {hooks: {module: null_long}}\n"
                      "routes: {a: {via: hooks, result: expected}, b: {via: hooks, claim: memory}}\n");
  assert_int_equal(route(config, "a")->claim, CLAIM_RECORDED);
  assert_int_equal(route(config, "a")->concurrency, 32);
  assert_int_equal(route(config, "a")->timeout_ms, 15 * 60000);
  assert_int_equal(route(config, "a")->timeout_max_ms, 150 * 60000);
  assert_null(route(config, "a")->reply_to); /* the answer comes with the call */
  assert_int_equal(route(config, "b")->claim, CLAIM_MEMORY);
  assert_int_equal(config->plugins[0].max_inflight, 64);
  config_free(&config);
}

static void test_backoff(void **state) {
  struct config *config =
      load(*state, BUS "routes:\n"
                       "  a: {via: bus, retry: {backoff: 10s}}\n"
                       "  b: {via: bus, retry: {backoff: 10s, multiplier: 1.5, max: 1m, jitter: 0}, max_attempts: 0}\n"
                       "  c: {via: bus, retry: {backoff: 2h}}\n"
                       "  d: {via: bus, retry: {levels: 5s, max: 6s}}\n");
  const struct retry_policy *a = &route(config, "a")->retry, *b = &route(config, "b")->retry;
  assert_int_equal(a->level_count, 0);
  assert_int_equal(a->backoff_ms, 10000);
  assert_true(near(a->multiplier, 2));
  assert_int_equal(a->max_ms, 3600000);
  assert_true(near(b->multiplier, 1.5));
  assert_int_equal(b->max_ms, 60000);
  assert_true(near(b->jitter, 0));
  assert_int_equal(b->max_attempts, 0);
  assert_int_equal(route(config, "c")->retry.max_ms, 7200000);
  assert_int_equal(route(config, "d")->retry.level_count, 1);
  assert_int_equal(route(config, "d")->retry.max_ms, 6000);
  config_free(&config);
}

static void test_results(void **state) {
  struct config *config =
      load(*state, DB "plugins: {bus: {module: \"null\"}, rabbit: {module: \"null\"}}\n"
                      "routes:\n"
                      "  a: {via: bus, result: expected}\n"
                      "  b: {via: rabbit, result: expected}\n"
                      "  c: {via: bus, result: expected, reply_to: mine}\n"
                      "  d: {via: bus}\n"
                      "results: [{via: rabbit, topic: r1}, {via: bus, topic: b1}, {via: rabbit, topic: r2}]\n");
  assert_int_equal(config->source_count, 3);
  assert_string_equal(config->sources[0].name, "rabbit#1");
  assert_string_equal(config->sources[1].name, "bus#1");
  assert_string_equal(config->sources[2].name, "rabbit#2");
  assert_ptr_equal(config->sources[1].plugin, &config->plugins[0]);
  assert_string_equal(route(config, "a")->reply_to, "b1");
  assert_string_equal(route(config, "b")->reply_to, "r1");
  assert_string_equal(route(config, "c")->reply_to, "mine");
  assert_null(route(config, "d")->reply_to);
  config_free(&config);
}

static void test_many_routes(void **state) {
  char *yaml = NULL;
  size_t len;
  FILE *out = open_memstream(&yaml, &len);
  fputs(BUS "routes:\n", out);
  for (int i = 4999; i >= 0; i--)
    fprintf(out, "  r%d: {via: bus}\n", i);
  fclose(out);
  struct config *config = load(*state, yaml);
  assert_int_equal(config->route_count, 5000);
  for (int i = 0; i < 5000; i++) {
    char name[16];
    snprintf(name, sizeof name, "r%d", i);
    route(config, name);
  }
  assert_null(config_route(config, "r50000", 6));
  assert_null(config_route(config, "", 0));
  assert_ptr_equal(config_route(config, "r5xx", 2), route(config, "r5"));
  assert_int_equal(config->plugins[0].max_inflight, 100000); /* 5000 x 10000, capped */
  config_free(&config);
  free(yaml);
}

static void test_drop_ins(void **state) {
  const struct config_fixture *f = *state;
  config_write(f, "conf.d/20.yaml", "log: {level: debug}\nresults: [{via: bus, topic: r2}]\n", 0600);
  config_write(f, "conf.d/10.yaml", "log: {level: error, format: json}\nroutes: {b: {via: bus, topic: t}}\n", 0600);
  config_write(f, "conf.d/15.yaml", "alerts: {dead: {route: b}}\nroutes:\n", 0600);
  config_write(f, "conf.d/.hidden.yaml", "log: {level: nonsense}\n", 0600);
  config_write(f, "conf.d/readme.txt", "no configuration\n", 0600);
  struct config *config =
      load(f, BUS "log: {level: warn}\nroutes: {a: {via: bus}}\nresults: [{via: bus, topic: r1}]\n");
  assert_int_equal(config->log.level, LOG_LEVEL_DEBUG);
  assert_int_equal(config->log.format, LOG_FORMAT_JSON);
  assert_int_equal(config->route_count, 2);
  assert_int_equal(config->source_count, 2);
  assert_ptr_equal(config->dead_alert, route(config, "b"));
  config_free(&config);
}

/* Alerts may go to a route that only another daemon has. */
static void test_foreign_alert(void **state) {
  struct config *config = load(*state, BUS "alerts: {dead: {route: ops.alert}}\n");
  assert_string_equal(config->dead_alert->name, "ops.alert");
  assert_null(config->dead_alert->plugin);
  config_free(&config);
}

static void test_secrets(void **state) {
  const struct config_fixture *f = *state;
  config_write(f, "db.secret", "  two words \r\n\n", 0600);
  assert_int_equal(setenv("DUEBOX_TEST_NAME", "shop$x", 1), 0);
  struct config *config =
      load(f, "database: {user: \"u-${DUEBOX_TEST_NAME}-$${X}-$\", name: shop, password_file: db.secret}\n");
  assert_string_equal(config->database.password, "  two words ");
  assert_string_equal(config->database.user, "u-shop$x-${X}-$");
  config_free(&config);
  assert_int_equal(setenv("CREDENTIALS_DIRECTORY", f->folder, 1), 0);
  config_write(f, "token", "0123456789abcdef\n", 0440); /* systemd's mode with an access list */
  config = load(f, DB "admin: {listen: \"[::]:80\", token_file: \"credential:token\", url: \"https://x.example\"}\n");
  assert_int_equal(unsetenv("CREDENTIALS_DIRECTORY"), 0);
  assert_string_equal(config->admin.token, "0123456789abcdef");
  assert_string_equal(config->admin.host, "::");
  assert_int_equal(config->admin.port, 80);
  assert_string_equal(config->admin.url, "https://x.example");
  config_free(&config);
}

static void test_transport(void **state) {
  static const char *const good[] = {
      "database: {user: u, name: s, host: 127.9.9.9}\n",
      "database: {user: u, name: s, host: localhost}\n",
      "database: {user: u, name: s, host: \"::1\"}\n",
      "database: {user: u, name: s, socket: /run/mysqld/mysqld.sock}\n",
      "database: {user: u, name: s, host: db.example, tls: true}\n",
      "database: {user: u, name: s, host: db.example, tls: yes, tls_ca: ca.pem}\n",
      "database: {user: u, name: s, host: db.example, allow_plaintext: true}\n",
  };
  for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
    struct config *config = load(*state, good[i]);
    config_free(&config);
  }
  char ca[128];
  struct config *config = load(*state, good[5]);
  config_place_text(*state, "@/ca.pem", ca, sizeof ca);
  assert_string_equal(config->database.tls_ca, ca);
  config_free(&config);
  config = load(*state, DB "admin: {listen: off}\n");
  assert_null(config->admin.host);
  config_free(&config);
}

static void test_two_listeners(void **state) {
  static const char *const good[] = {"127.0.0.2:8321", "127.0.0.1:8322", "[::1]:8321"};
  for (size_t i = 0; i < ARRAY_LEN(good); i++) {
    char yaml[256];
    snprintf(yaml, sizeof yaml, DB "admin: {token: 0123456789abcdef}\ncallbacks: {listen: \"%s\"}\n", good[i]);
    struct config *config = load(*state, yaml);
    config_free(&config);
  }
}

/* One change each; NULL = can be taken over. */
static const struct change {
  const char *yaml;
  const char *error;
} changes[] = {
    {BUS "routes: {a: {via: bus}}\n", NULL},
    {BUS "routes: {a: {via: bus, topic: t, rate: 5/s}, b: {via: bus}}\nlog: {level: debug}\n", NULL},
    {BUS "routes: {a: {via: bus}}\nengine: {batch: 5}\nalerts: {dead: {route: a}}\n", NULL},
    {"database: {user: duebox, name: other}\nplugins: {bus: {module: \"null\"}}\n", "database.name"},
    {DB "plugins: {bus: {module: \"null\", delay: 1s}}\n", "the section plugins"},
    {DB "plugins: {bus: {module: \"null\", settings: {a: b}}}\n", "the section plugins"},
    {DB "plugins: {bus: {module: \"null\", password: x}}\n", "the section plugins"},
    {DB "plugins: {other: {module: \"null\"}}\n", "the section plugins"},
    {DB "plugins: {bus: {module: null_long}}\n", "the section plugins"},
    {DB, "the section plugins"},
    {BUS "results: [{via: bus, topic: r}]\n", "the section results"},
    {BUS "admin: {listen: off}\n", "the section admin"},
    {BUS "callbacks: {listen: \"127.0.0.1:8322\", secret: 0123456789abcdef}\n", "the section callbacks"},
    {BUS "admin: {token: 0123456789abcdef}\n", "the section admin"},
    {BUS "engine: {instance: other}\n", "engine.instance"},
    {BUS "routes: {a: {via: bus, concurrency: 20000}}\n", NULL}, /* an instance has room for twice as much */
    {BUS "routes: {a: {via: bus, concurrency: 20001}}\n",
     "the concurrency of the routes via bus, 20001 in all, beyond the 20000 that it was made for,"},
};

static void test_reloadable(void **state) {
  struct config *now = load(*state, BUS "routes: {a: {via: bus}}\n");
  for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
    struct err err = {0};
    char wanted[256];
    struct config *next = load(*state, changes[i].yaml);
    bool ok = config_reloadable(now, next, &err);
    snprintf(wanted, sizeof wanted,
             "%s changed; this needs a restart, nothing was taken over. Run: systemctl restart duebox",
             changes[i].error ? changes[i].error : "");
    if (changes[i].error)
      assert_string_equal(err.text, wanted);
    assert_int_equal(ok, changes[i].error == NULL);
    config_free(&next);
  }
  config_free(&now);
}

#define SHOWN_BODY                                                                                                     \
  "database: {user: duebox, name: shop, password_file: db.secret, host: localhost}\n"                                  \
  "plugins:\n"                                                                                                         \
  "  bus: {module: \"null\", settings: {sasl.password: geheim, url: \"amqp://u:geheim@h/x\", plain: \"a b\"}}\n"       \
  "  hooks: {module: null_long, password: geheim}\n"                                                                   \
  "routes:\n"                                                                                                          \
  "  b: {via: bus, result: expected, rate: 6000/m, topic: t, key: \"{task_key}\"}\n"                                   \
  "  a: {via: hooks, secret: geheim, retry: {backoff: 90s}}\n"                                                         \
  "results: [{via: bus, topic: answers, records: [\"on\", x]}]\n"                                                      \
  "alerts: {dead: {route: a}}\n"
#define SHOWN_YAML SHOWN_BODY "admin: {listen: \"[::1]:80\", token: geheimgeheimgeheim}\n"

static void test_show(void **state) {
  const struct config_fixture *f = *state;
  static const char *const lines[] = {
      "  password: \"***\"  # @/duebox.yaml:1\n",
      "  port: 3306  # default\n",
      "    module: \"null\"  # @/duebox.yaml:3\n",
      "      sasl.password: \"***\"  # @/duebox.yaml:3\n",
      "      url: \"amqp://u:***@h/x\"  # @/duebox.yaml:3\n",
      "      plain: \"a b\"  # @/duebox.yaml:3\n",
      "  b:\n    via: bus  # @/duebox.yaml:6\n",
      "    rate: 100/s  # @/duebox.yaml:6\n",
      "    reply_to: answers  # default\n",
      "      backoff: 90s  # @/duebox.yaml:7\n      multiplier: 2  # default\n      max: 1h  # default\n",
      "    secret: \"***\"  # @/duebox.yaml:7\n",
      "  - via: bus  # @/duebox.yaml:8\n    topic: answers  # @/duebox.yaml:8\n"
      "    records: [\"on\", x]  # @/duebox.yaml:8\n",
      "  listen: \"[::1]:80\"  # @/duebox.yaml:10\n  token: \"***\"  # @/duebox.yaml:10\n"
      "  url: \"http://[::1]:80\"  # default\n",
      "  dead:\n    route: a  # @/duebox.yaml:9\n",
  };
  config_write(f, "db.secret", "geheim\n", 0600);
  struct config *config = load(f, SHOWN_YAML);
  char *yaml = config_shown(config, false), *json = config_shown(config, true);
  for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
    char wanted[512];
    config_place_text(f, lines[i], wanted, sizeof wanted);
    if (!strstr(yaml, wanted))
      fail_msg("missing: %s in:\n%s", wanted, yaml);
  }
  assert_null(strstr(yaml, "geheim"));
  assert_null(strstr(json, "geheim"));
  assert_non_null(strstr(json, "\"rate\": \"100/s\""));
  free(json);
  free(yaml);
  config_free(&config);

  config = load(f, SHOWN_BODY);
  yaml = config_shown(config, false);
  config_free(&config);
  config = load(f, yaml); /* what is shown can be loaded, and shows the same */
  json = config_shown(config, true);
  struct config *again = load(f, yaml);
  char *json_again = config_shown(again, true);
  assert_string_equal(json, json_again);
  assert_non_null(strstr(json, "\"reply_to\": \"answers\""));
  free(json_again);
  free(json);
  free(yaml);
  config_free(&config);
  config_free(&again);
}

/* Whoever writes a password into a URL does not escape it always, and it is printed nowhere all the same. */
static void test_show_logins(void **state) {
  const struct config_fixture *f = *state;
  static const char *const rows[][2] = {{"https://me:geheim@h/x", "https://me:***@h/x"},
                                        {"https://me:ge/heim@h/x", "https://me:***@h/x"},
                                        {"https://me:ge?h#eim@h:8322/x", "https://me:***@h:8322/x"},
                                        {"https://me:ge@heim@h", "https://me:***@h"},
                                        {"amqp://a:geheim@h,amqps://b:ge/heim@i/v", "amqp://a:***@h,amqps://b:***@i/v"},
                                        {"https://h/x,https://me:geheim@i", "https://h/x,https://me:***@i"},
                                        {"https://h:8322/a@b", "https://h:8322/a@b"},
                                        {"https://[::1]:8322/a:b@c", "https://[::1]:8322/a:b@c"},
                                        {"https://h:{task_key}/a@b", "https://h:{task_key}/a@b"},
                                        {"https://h/a:b@c", "https://h/a:b@c"},
                                        {"https://me@h/x", "https://me@h/x"}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    char text[512], wanted[128];
    snprintf(text, sizeof text,
             "database: {user: duebox, name: shop}\n"
             "plugins: {bus: {module: \"null\", settings: {url: \"%s\"}}}\n"
             "routes: {b: {via: bus, topic: \"t\"}}\n"
             "callbacks: {base_url: \"%s\"}\n",
             rows[i][0], rows[i][0]);
    struct config *config = load(f, text);
    char *yaml = config_shown(config, false);
    for (int key = 0; key < 2; key++) {
      snprintf(wanted, sizeof wanted, "%s: \"%s\"", key ? "base_url" : "url", rows[i][1]);
      if (!strstr(yaml, wanted) || strstr(yaml, "heim"))
        fail_msg("missing: %s in:\n%s", wanted, yaml);
    }
    free(yaml);
    config_free(&config);
  }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_defaults),      TEST(test_route_defaults), TEST(test_timeout_max), TEST(test_long_calls),
      TEST(test_backoff),       TEST(test_results),        TEST(test_many_routes), TEST(test_drop_ins),
      TEST(test_foreign_alert), TEST(test_secrets),        TEST(test_transport),   TEST(test_two_listeners),
      TEST(test_reloadable),    TEST(test_show),           TEST(test_show_logins),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
