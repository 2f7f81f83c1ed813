/* SPDX-License-Identifier: MIT
 *
 * tests/unit/test_link.c - one rule for all kinds of connection, as `duebox check` applies it with the real plugins:
 * nothing readable and nothing unverified leaves this machine unless its option says so by name.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <duebox/link.h>

#include "config_fixture.h"

static struct config_fixture fixture;

/* Each kind with a host put in its place, and options behind it. */
static const struct kind {
  const char *name, *database, *plugin, *route; /* formats: host, options */
  const char *tls;                              /* options that encrypt */
} kinds[] = {
    {"database", "host: \"%s\"%s", "module: kafka, brokers: \"127.0.0.1:1\"%.0s%.0s", "topic: t", ", tls: true"},
    {"kafka", "socket: /s%.0s%.0s", "module: kafka, brokers: \"%s:9092\"%s", "topic: t", ", tls: true"},
    {"amqp", "socket: /s%.0s%.0s", "module: amqp, url: \"amqp://u:p@%s:5672/\"%s", "routing_key: q", NULL},
    {"amqps", "socket: /s%.0s%.0s", "module: amqp, url: \"amqps://u:p@%s:5671/\"%s", "routing_key: q", ""},
    {"http", "socket: /s%.0s%.0s", "module: http, allow_private: true%.0s%s", "url: \"http://%s/hook\"", NULL},
    {"https", "socket: /s%.0s%.0s", "module: http, allow_private: true%.0s%s", "url: \"https://%s/hook\"", ""},
};

static bool accepted(const struct kind *kind, const char *host, const char *options, struct err *err) {
  char database[256], plugin[256], route[256], text[1024];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
  snprintf(database, sizeof database, kind->database, host, options);
  snprintf(plugin, sizeof plugin, kind->plugin, host, options);
  snprintf(route, sizeof route, kind->route, host);
#pragma GCC diagnostic pop
  snprintf(text, sizeof text, "database: {user: u, name: s, %s}\nplugins: {p: {%s}}\nroutes: {r: {via: p, %s}}\n",
           database, plugin, route);
  config_write(&fixture, "duebox.yaml", text, 0600);
  struct config *config = config_try(&fixture, err);
  bool ok = config != NULL;
  if (config)
    config_free(&config);
  return ok;
}

static void every_kind_of_connection_keeps_the_rule(void **state) {
  static const char *const here[] = {"localhost", "127.0.0.1", "127.1.2.3"};
  static const char *const away[] = {"other.example", "10.0.0.1", "localhost.example", "127.evil.example",
                                     "127.0.0.1.example"};
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
    const struct kind *kind = &kinds[i];
    bool encrypted = kind->tls && !kind->tls[0];
    struct err err = {0};
    for (size_t h = 0; h < sizeof here / sizeof here[0]; h++)
      if (!accepted(kind, here[h], "", &err))
        fail_msg("%s to %s: %s", kind->name, here[h], err.text);
    for (size_t h = 0; h < sizeof away / sizeof away[0]; h++) {
      bool ok = accepted(kind, away[h], "", &err);
      if (ok != encrypted || (!ok && !strstr(err.text, "allow_plaintext")))
        fail_msg("%s to %s: %s", kind->name, away[h], ok ? "accepted" : err.text);
      if (!encrypted && !accepted(kind, away[h], ", allow_plaintext: true", &err))
        fail_msg("%s to %s, permitted by name: %s", kind->name, away[h], err.text);
      if (kind->tls && !accepted(kind, away[h], kind->tls, &err))
        fail_msg("%s to %s, encrypted: %s", kind->name, away[h], err.text);
    }
  }
}

static void a_host_is_this_machine_by_name_only(void **state) {
  static const struct {
    const char *host;
    bool local;
  } rows[] = {
      {"localhost", true},    {"LocalHost", true},   {"127.0.0.1", true},       {"127.255.255.254", true},
      {"::1", true},          {"[::1]", true},       {"0:0:0:0:0:0:0:1", true}, {"", false},
      {"127", false},         {"127.", false},       {"127.0.0", false},        {"127.0.0.", false},
      {"127.0.0.256", false}, {"127.0.0.01", false}, {"127.0.0.1.", false},     {"127.0.0.1.example", false},
      {"1127.0.0.1", false},  {"localhost.", false}, {"localhos", false},       {"localhost.example", false},
      {"::2", false},         {"[]", false},         {"0.0.0.0", false},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    if (duebox_link_is_local(rows[i].host, strlen(rows[i].host)) != rows[i].local)
      fail_msg("\"%s\" counts as %s", rows[i].host, rows[i].local ? "another machine" : "this machine");
}

static void a_verdict_for_every_combination(void **state) {
  for (unsigned bits = 0; bits < 64; bits++) {
    struct duebox_link link = {.host = bits & 1 ? "localhost" : "db.example",
                               .host_len = bits & 1 ? 9 : 10,
                               .tls = bits & 2,
                               .verified = bits & 4,
                               .reveals_password = bits & 8,
                               .allow_plaintext = bits & 16,
                               .allow_unverified = bits & 32};
    bool readable = !link.tls && !(bits & 1) && !link.allow_plaintext;
    bool unverified = link.tls && !link.verified && !link.allow_unverified;
    bool password = link.reveals_password && !(link.tls && link.verified);
    assert_int_equal(duebox_link_judge(&link), readable     ? DUEBOX_LINK_PLAINTEXT
                                               : unverified ? DUEBOX_LINK_UNVERIFIED
                                               : password   ? DUEBOX_LINK_PASSWORD
                                                            : DUEBOX_LINK_ALLOWED);
    link.host = NULL; /* a socket */
    link.tls = false;
    assert_int_equal(duebox_link_judge(&link), DUEBOX_LINK_ALLOWED);
  }
}

static int open_fixture(void **state) { return config_set_up(&fixture); }

static int close_fixture(void **state) {
  config_tear_down(&fixture);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_kind_of_connection_keeps_the_rule),
      cmocka_unit_test(a_host_is_this_machine_by_name_only),
      cmocka_unit_test(a_verdict_for_every_combination),
  };
  return cmocka_run_group_tests_name("link", tests, open_fixture, close_fixture);
}
