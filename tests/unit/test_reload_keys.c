/* SPDX-License-Identifier: MIT
 *
 * A reload keeps its word about every key there is: it takes effect, or it is refused with "needs a restart".
 *
 * The test walks over the option rows, changes each key and reloads. A key that a reload accepts must be in the list
 * below, with the place that reads it anew: whoever adds a key decides which of the two it is.
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
#include "core/config_rows.h"
#include "core/options.h"

/* Live keys: read from the configuration in use whenever they matter, or set anew by the reload. */
static const char *const live[] = {
    /* every round of the keeper, every poll, every read, every decision */
    "engine.lease", "engine.poll_min", "engine.poll_max", "engine.poll_mode", "engine.batch", "engine.max_checkpoint",
    "engine.dead_retention", "engine.attempts_retention", "engine.max_recoveries", "engine.hang",
    /* engine_reload() and daemon.c */
    "engine.settle_rows", "engine.settle_delay", "engine.drain_timeout", "log.level", "log.format",
    /* a route's lane is pointed at its new configuration, its plugin instance at the new sum */
    "route.claim", "route.result", "route.order", "route.timeout", "route.timeout_max", "route.max_attempts",
    "route.give_up", "route.concurrency", "route.inflight_bytes", "route.rate", "route.breaker", "route.history",
    "route.every_attempt", "route.reply_to", "source.routes", "retry.levels", "retry.backoff", "retry.multiplier",
    "retry.max", "retry.jitter", "dead.route"};

#define CALLBACKS "listen: 127.0.0.1:1, secret: 0123456789abcdef0123456789abcdef"
/* Values that a type alone does not give, with the keys that they need. */
static const struct {
  const char *key, *yaml;
} special[] = {{"database.host", "host: localhost"},
               {"database.socket", "socket: /run/other.sock"},
               {"database.tls_ca", "tls: true, tls_ca: /etc/hostname"},
               {"engine.cpus", "cpus: 0"},
               {"engine.poll_max", "poll_max: 200ms"},
               {"database.migrate_password", "migrate_user: duebox, migrate_password: other"},
               {"admin.listen", "listen: 127.0.0.1:1"},
               {"admin.url", "url: http://127.0.0.1:1"},
               {"admin.token", "token: 0123456789abcdef0123456789abcdef"},

               {"callbacks.listen", CALLBACKS},
               {"callbacks.base_url", CALLBACKS ", base_url: http://127.0.0.1:1"},
               {"callbacks.secret", CALLBACKS},
               {"callbacks.previous_secret", CALLBACKS ", previous_secret: 0123456789abcdef0123456789abcde0"},
               {"route.result", "result: expected, reply_to: answers"},
               {"retry.multiplier", "backoff: 1s, multiplier: 3"},
               {"retry.jitter", "jitter: 0.1"},
               {"dead.route", "route: b"}};

static bool listed(const char *key) {
  for (size_t i = 0; i < sizeof live / sizeof live[0]; i++)
    if (strcmp(live[i], key) == 0)
      return true;
  return false;
}

/* "key: value", a value that is allowed and is not the default. */
static void changed_yaml(const char *section, const struct duebox_option *row, char *out, size_t cap) {
  char key[128];
  snprintf(key, sizeof key, "%s.%s", section, row->name);
  for (size_t i = 0; i < sizeof special / sizeof special[0]; i++)
    if (strcmp(special[i].key, key) == 0) {
      snprintf(out, cap, "%s", special[i].yaml);
      return;
    }
  int64_t number = row->max ? row->min + 1 : 7;
  switch (row->type) {
  case DUEBOX_OPT_BOOL:
    snprintf(out, cap, "%s: %s", row->name, row->def && strcmp(row->def, "true") == 0 ? "false" : "true");
    break;
  case DUEBOX_OPT_ENUM:
    snprintf(out, cap, "%s: \"%s\"", row->name, row->choices[row->def && strcmp(row->choices[0], row->def) == 0]);
    break;
  case DUEBOX_OPT_INT:
  case DUEBOX_OPT_SIZE:
    snprintf(out, cap, "%s: %lld", row->name, (long long)number);
    break;
  case DUEBOX_OPT_DURATION:
    snprintf(out, cap, "%s: %lldms", row->name, (long long)number);
    break;
  case DUEBOX_OPT_DURATIONS:
    snprintf(out, cap, "%s: [7s]", row->name);
    break;
  case DUEBOX_OPT_RATE:
    snprintf(out, cap, "%s: 17/s", row->name);
    break;
  default:
    snprintf(out, cap, "%s: other", row->name);
  }
}

struct section {
  const char *name;
  const struct duebox_option *rows;
  const char *before, *after; /* the YAML around the key */
};

#define DB "database: {user: duebox, name: shop}\n"
#define BUS "plugins: {bus: {module: \"null\"}}\n"
#define ROUTES "routes: {a: {via: bus}, b: {via: bus}}\n"
#define ALERT "alerts: {dead: {route: a}}\n"
#define ANSWERS "results: [{via: bus, topic: answers}]\n"
static const char base[] = DB BUS ROUTES ALERT ANSWERS;
static const struct section sections[] = {
    {"database", config_database_rows, ANSWERS BUS ROUTES ALERT "database: {", "}\n"},
    {"engine", config_engine_rows, DB ANSWERS BUS ROUTES ALERT "engine: {", "}\n"},
    {"admin", config_admin_rows, DB ANSWERS BUS ROUTES ALERT "admin: {", "}\n"},
    {"callbacks", config_callbacks_rows, DB ANSWERS BUS ROUTES ALERT "callbacks: {", "}\n"},
    {"log", config_log_rows, DB ANSWERS BUS ROUTES ALERT "log: {", "}\n"},
    {"route", config_route_rows, DB ANSWERS BUS ALERT "routes: {b: {via: bus}, a: {via: bus, ", "}}\n"},
    {"retry", config_retry_rows, DB ANSWERS BUS ALERT "routes: {b: {via: bus}, a: {via: bus, retry: {", "}}}\n"},
    {"source", config_source_rows, DB BUS ROUTES ALERT "results: [{via: bus, topic: answers, ", "}]\n"},
    {"dead", config_alert_rows, DB ANSWERS BUS ROUTES "alerts: {dead: {", "}}\n"},
};

static struct config *load(const struct config_fixture *f, const char *yaml) {
  struct err err = {0};
  config_write(f, "duebox.yaml", yaml, 0600);
  struct config *config = config_try(f, &err);
  if (!config)
    fail_msg("%s\n%s", err.text, yaml);
  return config;
}

/* The keys that must be given stay, unless it is their turn. */
static void required(const struct section *section, const struct duebox_option *row, char *out, size_t cap) {
  bool database = section->rows == config_database_rows;
  snprintf(out, cap, "%s%s", database && strcmp(row->name, "user") != 0 ? "user: duebox, " : "",
           database && strcmp(row->name, "name") != 0 ? "name: shop, " : "");
}

static void change_one(const struct config_fixture *f, const struct config *now, const struct section *section,
                       const struct duebox_option *row) {
  char yaml[2048], given[128], changed[256], key[128];
  struct err err = {0};
  required(section, row, given, sizeof given);
  changed_yaml(section->name, row, changed, sizeof changed);
  snprintf(yaml, sizeof yaml, "%s%s%s%s", section->before, given, changed, section->after);
  snprintf(key, sizeof key, "%s.%s", section->name, row->name);
  struct config *next = load(f, yaml);
  bool taken = config_reloadable(now, next, &err);
  if (row->flags & CONFIG_RESTART) {
    if (taken || !strstr(err.text, "needs a restart"))
      fail_msg("%s is marked as needing a restart, and a reload says: %s", key, taken ? "taken" : err.text);
    if (strcmp(section->name, "admin") != 0 && !strstr(err.text, section->name))
      fail_msg("%s: the refusal names another key: %s", key, err.text);
  } else if (!taken) {
    fail_msg("%s is marked as live and refused: %s", key, err.text);
  } else if (!listed(key)) {
    fail_msg("%s is accepted by a reload: mark its row with CONFIG_RESTART, or list here what reads it anew", key);
  }
  config_free(&next);
}

static void every_key_is_live_or_refused(void **state) {
  struct config_fixture f;
  assert_int_equal(config_set_up(&f), 0);
  struct config *now = load(&f, base);
  size_t keys = 0, accepted = 0;
  for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++)
    for (const struct duebox_option *row = sections[i].rows; row->name; row++) {
      change_one(&f, now, &sections[i], row);
      keys++;
      accepted += !(row->flags & CONFIG_RESTART);
    }
  assert_true(keys > 50);
  assert_int_equal(accepted, sizeof live / sizeof live[0]); /* none is listed that is not there any more */
  config_free(&now);
  config_tear_down(&f);
}

/* A route via a plugin that had none, more concurrency: what a reload accepts has room in the instance made at start.
 */
static void an_instance_has_room_for_what_a_reload_accepts(void **state) {
  static const struct {
    const char *routes;
    bool taken;
  } rows[] = {{"routes: {a: {via: idle}}\n", true},
              {"routes: {a: {via: idle, concurrency: 10001}}\n", false},
              {"routes: {a: {via: slow, concurrency: 256}}\n", true},
              {"routes: {a: {via: slow, concurrency: 257}}\n", false}};
  static const char plugins[] = DB "plugins: {idle: {module: \"null\"}, slow: {module: null_long}}\n";
  struct config_fixture f;
  char yaml[1024];
  assert_int_equal(config_set_up(&f), 0);
  struct config *now = load(&f, plugins);
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    struct err err = {0};
    snprintf(yaml, sizeof yaml, "%s%s", plugins, rows[i].routes);
    struct config *next = load(&f, yaml);
    if (config_reloadable(now, next, &err) != rows[i].taken)
      fail_msg("%s: %s", rows[i].routes, err.text);
    for (size_t p = 0; p < next->plugin_count && rows[i].taken; p++)
      assert_true(next->plugins[p].max_inflight <= now->plugins[p].capacity);
    config_free(&next);
  }
  config_free(&now);
  config_tear_down(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_key_is_live_or_refused),
      cmocka_unit_test(an_instance_has_room_for_what_a_reload_accepts),
  };
  return cmocka_run_group_tests_name("reload_keys", tests, NULL, NULL);
}
