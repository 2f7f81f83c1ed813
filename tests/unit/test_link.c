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
#include "core/admin_url.h"

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

/* The operator's token goes readable to no other machine, whoever gave the address: the configuration or a table. */
static void the_operators_token_keeps_the_rule_too(void **state) {
  static const struct {
    const char *url;
    bool token, plaintext, ok;
    const char *says;
  } rows[] = {
      {"http://127.0.0.1:8321", true, false, true, ""},
      {"http://localhost:8321/", true, false, true, ""},
      {"http://[::1]:8321/outbox", true, false, true, ""},
      {"https://outbox.example", true, false, true, ""},
      {"https://[2001:db8::1]:443/a/b", true, false, true, ""},
      {"http://10.0.0.1:8321", false, false, true, ""}, /* no token is sent */
      {"http://10.0.0.1:8321", true, true, true, ""},
      {"http://10.0.0.1:8321", true, false, false, "admin.allow_plaintext: true"},
      {"http://outbox.example", true, false, false, "https://"},
      {"http://0.0.0.0:8321", true, false, false, "another machine"},
      {"http://localhost.example", true, false, false, "another machine"},
      {"http://[fe80::1%25eth0]:8321", true, false, false, "another machine"},
      {"HTTP://127.0.0.1", true, false, false, "no URL"},
      {"ftp://127.0.0.1", true, false, false, "no URL"},
      {"https://op:guess-me@outbox.example", true, true, false, "leave them out"},
      {"ftp://op:guess-me@outbox.example", true, true, false, "leave them out"},
      {"http://127.0.0.1:1@evil.example", false, false, false, "leave them out"},
      /* what two readers of URLs may take for two hosts */
      {"http://127.0.0.1\\.evil.example", true, false, false, "no address"},
      {"http://127.0.0.1:80:81", true, false, false, "no address"},
      {"http://127.0.0.1:", true, false, false, "no address"},
      {"http://127.0.0.1:123456", true, false, false, "no address"},
      {"http://127.0.0.1 .evil.example/", true, false, false, "no address"},
      {"http://127.0.0.1?x", true, false, false, "no address"},
      {"http://127.0.0.1/\r\nX: y", true, false, false, "no address"},
      {"http://[::1", true, false, false, "no address"},
      {"http://[]", true, false, false, "no address"},
      {"http://", true, false, false, "no address"},
      {"", true, false, false, "no URL"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    struct err err = {0};
    bool ok = admin_url_check(rows[i].url, rows[i].token, rows[i].plaintext, &err);
    if (ok != rows[i].ok || !strstr(err.text, rows[i].says) || strstr(err.text, "guess-me"))
      fail_msg("\"%s\": %s", rows[i].url, ok ? "accepted" : err.text);
  }
}

static void admin_url_is_judged_when_it_is_loaded(void **state) {
  static const struct {
    const char *admin;
    const char *url; /* NULL = refused */
  } rows[] = {
      {"listen: \"0.0.0.0:8321\", ", "http://127.0.0.1:8321"},
      {"listen: \"[::]:8321\", ", "http://[::1]:8321"},
      {"listen: \"10.0.0.1:8321\", ", NULL},
      {"listen: \"10.0.0.1:8321\", allow_plaintext: true, ", "http://10.0.0.1:8321"},
      {"listen: \"10.0.0.1:8321\", url: \"https://x.example/\", ", "https://x.example/"},
      {"url: \"http://10.9.8.7:8321\", ", NULL},
      {"url: \"http://op:guess-me@127.0.0.1:1\", ", NULL},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    char text[512];
    struct err err = {0};
    snprintf(text, sizeof text,
             "database: {user: u, name: s, socket: /s}\nadmin: {%stoken: 0123456789abcdef0123456789abcdef}\n",
             rows[i].admin);
    config_write(&fixture, "duebox.yaml", text, 0600);
    struct config *config = config_try(&fixture, &err);
    bool as_said = config && rows[i].url ? strcmp(config->admin.url, rows[i].url) == 0 : !config && !rows[i].url;
    if (!as_said || strstr(err.text, "guess-me") || (!config && !strstr(err.text, "admin.")))
      fail_msg("{%s}: %s", rows[i].admin, config ? config->admin.url : err.text);
    if (config)
      config_free(&config);
  }
}

static int open_fixture(void **state) { return config_set_up(&fixture); }

static int close_fixture(void **state) {
  config_tear_down(&fixture);
  return 0;
}

/* Every callback URL begins with it: what is no URL would make each task of an HTTP route dead, one by one. */
static void what_callback_urls_begin_with(void **state) {
  static const char *const good[] = {"http://h",       "https://duebox.example", "http://127.0.0.1:8322",
                                     "http://[::1]:8", "https://x.y/a/b%20c",    "https://x/~d,e;f=@g"};
  static const char *const bad[] = {"",
                                    "h",
                                    "ftp://h",
                                    "http://",
                                    "https:///path",
                                    "http://:80",
                                    "http://u@h",
                                    "http://u:p@h/",
                                    "http://h:port",
                                    "http://h?q",
                                    "http://h/p?q",
                                    "http://h/p#f",
                                    "http://h/a b",
                                    "http://h h",
                                    "http://x\r\nEvil: 1",
                                    "http://x/\r\nEvil: 1",
                                    "http://h/\x7f",
                                    "http://h/\xc3\xa4",
                                    "http://h\\p"};
  struct err err;
  for (size_t i = 0; i < ARRAY_LEN(good); i++)
    if (!base_url_check(good[i], &err))
      fail_msg("%s: %s", good[i], err.text);
  for (size_t i = 0; i < ARRAY_LEN(bad); i++)
    if (base_url_check(bad[i], &err))
      fail_msg("accepted \"%s\"", bad[i]);
  static const char *const logins[] = {"http://u@h", "http://u:geheim@h/", "https://u:ge/heim@h/",
                                       "https://u:ge?heim@h"};
  for (size_t i = 0; i < ARRAY_LEN(logins); i++)
    if (base_url_check(logins[i], &err) || !strstr(err.text, "leave them out") || strstr(err.text, "heim"))
      fail_msg("%s: %s", logins[i], err.text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_kind_of_connection_keeps_the_rule),
      cmocka_unit_test(a_host_is_this_machine_by_name_only),
      cmocka_unit_test(a_verdict_for_every_combination),
      cmocka_unit_test(the_operators_token_keeps_the_rule_too),
      cmocka_unit_test(admin_url_is_judged_when_it_is_loaded),
      cmocka_unit_test(what_callback_urls_begin_with),
  };
  return cmocka_run_group_tests_name("link", tests, open_fixture, close_fixture);
}
