/* SPDX-License-Identifier: MIT
 *
 * tests/unit/test_config_secrets.c - no error of a configuration quotes what came from the environment or a file.
 *
 * Error texts are logged, pasted into tickets and printed by `duebox check` in CI. Every key of every section and of
 * the real plugins is given values of all shapes that are refused, by ${SECRET} and by `<key>_file`.
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
#include "core/base/attr.h"
#include "core/config_mask.h"
#include "core/config_rows.h"
#include "core/options.h"

enum { FINDINGS_MAX = 16384 };

/* Each has "gehe" or "86753" in all of its parts that a message could quote. */
static const char *const shapes[] = {
    "geheim geheim",
    "geheim",
    "8675309",
    "-8675309",
    "8675309geheims",
    "{geheim",
    "geheim://geheim:geheim@geheim.example:geheim/geheim%zz",
    "amqp://geheim:geheim@geheim.example:99999/geheim",
    "http://geheim:geheim@geheim.example/geheim",
    "https://geheim_geheim/../geheim",
    "https://{geheim}.example/geheim",
    "geheim.example:8675309",
    "8675309, geheim, 8675309s",
    "whsec_geheim",
    "/geheim/geheim",
    "geheim\ngeheim\001geheim",
    "geheimgeheimgeheimgeheimgeheimgeheimgeheimgeheimgeheimgeheimgeheimgeheimgeheimgeheimgeheimgeheimgeheimgeheimgeh",
};

struct form {
  const char *before;   /* a map that is still open; %s of `after` closes it */
  const char *required; /* its required keys, "a: 1, b: 2, " */
  const char *after;
  const char *module; /* NULL: the core's rows */
  const struct duebox_option *rows;
  int table; /* of the module: 0 options, 1 route, 2 source */
};

#define DB "database: {user: u, name: s}\n"
#define BUS "plugins: {bus: {module: kafka, brokers: localhost}, mq: {module: amqp, url: \"amqp://localhost\"}, "
#define ALL DB BUS "hooks: {module: http}}\n"

static const struct form forms[] = {
    {"database: {", "user: u, name: s, ", "}\n", NULL, config_database_rows, 0},
    {DB "engine: {", "", "}\n", NULL, config_engine_rows, 0},
    {DB "admin: {", "", "}\n", NULL, config_admin_rows, 0},
    {DB "callbacks: {", "secret: 0123456789abcdef0123, ", "}\n", NULL, config_callbacks_rows, 0},
    {DB "log: {", "", "}\n", NULL, config_log_rows, 0},
    {ALL "alerts: {dead: {", "", "}}\nroutes: {geheime: {via: bus, topic: t}}\n", NULL, config_alert_rows, 0},
    {ALL "routes: {a: {via: bus, topic: t, ", "", "}}\n", NULL, config_route_rows, 0},
    {ALL "routes: {a: {via: bus, topic: t, retry: {", "", "}}}\n", NULL, config_retry_rows, 0},
    {DB "plugins: {p: {module: kafka, ", "brokers: localhost, ", "}}\n", "kafka", NULL, 0},
    {DB "plugins: {p: {module: kafka, tls: true, username: u, password: p, ", "brokers: localhost, ", "}}\n", "kafka",
     NULL, 0},
    {DB "plugins: {p: {module: amqp, ", "url: \"amqp://localhost\", ", "}}\n", "amqp", NULL, 0},
    {DB "plugins: {p: {module: http, ", "", "}}\n", "http", NULL, 0},
    {ALL "routes: {a: {via: bus, ", "topic: t, ", "}}\n", "kafka", NULL, 1},
    {ALL "routes: {a: {via: mq, ", "routing_key: k, ", "}}\n", "amqp", NULL, 1},
    {ALL "routes: {a: {via: hooks, ", "url: \"https://a.example/\", ", "}}\n", "http", NULL, 1},
    {ALL "results: [{via: bus, ", "topic: t, ", "}]\n", "kafka", NULL, 2},
    {ALL "results: [{via: mq, ", "queue: q, ", "}]\n", "amqp", NULL, 2},
};

static void collect(void *ctx, const char *text) {
  char *lines = ctx;
  size_t used = strlen(lines);
  snprintf(lines + used, FINDINGS_MAX - used, "%s\n", text);
}

static const struct duebox_option *rows_of(const struct config_fixture *f, const struct form *form) {
  struct err err = {0};
  if (!form->module)
    return form->rows;
  const struct module *module = modules_load(f->modules, form->module, &err);
  if (!module)
    fail_msg("%s", err.text);
  return form->table == 0   ? module->plugin->options
         : form->table == 1 ? module->plugin->route_options
                            : module->plugin->source_options;
}

/* The required keys without the one that the test gives itself. */
static void other_keys(const struct form *form, const char *key, char *out, size_t cap) {
  out[0] = '\0';
  for (const char *p = form->required; *p;) {
    size_t n = strcspn(p, ",") + 2, used = strlen(out), len = strlen(key);
    if (strncmp(p, key, len) != 0 || p[len] != ':')
      snprintf(out + used, cap - used, "%.*s", (int)n, p);
    p += n;
  }
}

/* Whether there is nothing to say of it; else lines and err have it. */
static bool is_right(const struct config_fixture *f, const char *text, char *lines, struct err *err) {
  char path[256];
  struct config *config = NULL;
  config_write(f, "duebox.yaml", text, 0600);
  snprintf(path, sizeof path, "%s/duebox.yaml", f->folder);
  bool ok = config_examine(path, f->modules, collect, lines, &config, err);
  config_free(&config);
  return ok;
}

/* Returns whether the file was refused. */
static bool examine(const struct config_fixture *f, const struct form *form, const char *key, const char *value) {
  char text[2048], required[256], lines[FINDINGS_MAX] = "";
  struct err err = {0};
  other_keys(form, key, required, sizeof required);
  snprintf(text, sizeof text, "%s%s%s: %s%s", form->before, required, key, value, form->after);
  bool ok = is_right(f, text, lines, &err);
  if (strstr(lines, "gehei") || strstr(lines, "86753") || strstr(err.text, "gehei") || strstr(err.text, "86753"))
    fail_msg("%s\nsays: %s%s", text, lines, err.text);
  return !ok;
}

static void no_error_quotes_a_secret(void **state) {
  struct config_fixture f;
  size_t refused = 0;
  assert_int_equal(config_set_up(&f), 0);
  for (size_t s = 0; s < ARRAY_LEN(shapes); s++) {
    setenv("SECRET", shapes[s], 1);
    config_write(&f, "s", shapes[s], 0600);
    for (size_t i = 0; i < ARRAY_LEN(forms); i++)
      for (const struct duebox_option *row = rows_of(&f, &forms[i]); row->name; row++) {
        bool list = row->type == DUEBOX_OPT_LIST || row->type == DUEBOX_OPT_DURATIONS;
        char key[128];
        snprintf(key, sizeof key, "%s_file", row->name);
        refused += examine(&f, &forms[i], row->name, "\"${SECRET}\"");
        if (s < 3) { /* a part of a word */
          refused += examine(&f, &forms[i], row->name, "\"x${SECRET}\"");
          refused += examine(&f, &forms[i], row->name, "\"1${SECRET}2${SECRET}x x\"");
        }
        if (list || s == 0)
          refused += examine(&f, &forms[i], row->name, "[\"${SECRET}\", x]");
        if (row->type == DUEBOX_OPT_MAP || s == 0)
          refused += examine(&f, &forms[i], row->name, "{X-Any: \"${SECRET}\", acks: \"${SECRET}\"}");
        if (!option_has_file(row) && s > 0)
          continue;
        refused += examine(&f, &forms[i], key, row->type == DUEBOX_OPT_MAP ? "{X-Any: s}" : "s");
        refused += examine(&f, &forms[i], key, "\"${SECRET}\"");
      }
  }
  assert_true(refused > 1000); /* else the test gives nothing that is wrong */
  config_tear_down(&f);
}

/* Names of plugins, modules and routes are the core's own keys. */
static void no_name_that_is_not_found_is_quoted(void **state) {
  static const struct form rows[] = {{DB "plugins: {p: {", "", "}}\n", NULL, NULL, 0},
                                     {ALL "routes: {a: {topic: t, ", "", "}}\n", NULL, NULL, 0},
                                     {ALL "results: [{topic: t, ", "", "}]\n", NULL, NULL, 0}};
  struct config_fixture f;
  assert_int_equal(config_set_up(&f), 0);
  for (size_t s = 0; s < ARRAY_LEN(shapes); s++) {
    setenv("SECRET", shapes[s], 1);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
      assert_true(examine(&f, &rows[i], i ? "via" : "module", "\"${SECRET}\""));
  }
  config_tear_down(&f);
}

/* What is not secret stays readable: the place, the hint, and values that stand in the file itself. */
static void the_rest_of_the_text_stays(void **state) {
  static const struct {
    const char *secret, *text, *masked; /* "^" ends the place */
  } rows[] = {
      {"geheim", "/etc/geheim.yaml:1:2: ^\"geheim\" is not a choice",
       "/etc/geheim.yaml:1:2: \"***\" is not a choice; *** hides a secret, or what came from the environment or a "
       "file"},
      {"0.0.0.0:8321", "^listen on 127.0.0.1", "listen on 127.0.0.1"},
      {"https://geheim/", "^write https://host/path", "write https://host/path"},
      {"passion", "^password is wrong", "password is wrong"},
      {"ab", "^about \"ab\" and ab",
       "about \"***\" and ab; *** hides a secret, or what came from the environment or a file"},
      {"1234567", "^write 1234567s", "write ***s; *** hides a secret, or what came from the environment or a file"},
      {"", "^\"\" is empty", "\"\" is empty"},
      {"whsec_verborgen", "^a whsec_ key must be long: echo whsec_$(openssl ..); not \"whsec_verborgen\"",
       "a whsec_ key must be long: echo whsec_$(openssl ..); not \"***\"; *** hides a secret, or what came from the "
       "environment or a file"},
      {"mysecretvalue99", "^secret: a key must begin with whsec_ (shared secret)",
       "secret: a key must begin with whsec_ (shared secret)"},
      {"secretvalue99", "^secret: not \"secretvalue99\"",
       "secret: not \"***\"; *** hides a secret, or what came from the environment or a file"},
      {"my-secret-99", "^secret: a key must begin with", "secret: a key must begin with"},
      {"my-verborgen-99", "^secret: not verborgen",
       "secret: not ***; *** hides a secret, or what came from the environment or a file"},
      {"xverborgeny", "^secret: not verborgen", "secret: not verborgen"},
      /* Of a password with the word password, and of one that is that word, the messages about passwords stay. */
      {"password",
       "^tls is off: passwords and payloads would cross the network; set password_file: or password: \"..\"",
       "tls is off: passwords and payloads would cross the network; set password_file: or password: \"..\""},
      {"password", "^not \"password\"", "not \"***\"; *** hides a secret, or what came from the environment or a file"},
      {"password", "^password is another machine",
       "*** is another machine; *** hides a secret, or what came from the environment or a file"},
      {"my password file", "^password file and password: who may read the password file?",
       "password file and password: who may read the password file?"},
      {"the-secret-token-of-ours-9", "^the secret-token of secret-token-of",
       "the secret-token of ***; *** hides a secret, or what came from the environment or a file"},
      {"secret-token-user-error-9", "^not secret-token-user-er..",
       "not ***..; *** hides a secret, or what came from the environment or a file"},
      {"whsk_verborgen", "^write whsec_ or whsk_ first", "write whsec_ or whsk_ first"},
      {"a\nverborgen", "^x verborgen", "x ***; *** hides a secret, or what came from the environment or a file"},
  };
  struct arena *arena = arena_new();
  for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
    struct config_secrets secrets = {0};
    struct err err = {0};
    config_secrets_add(&secrets, arena, NULL, rows[i].secret);
    err.place = strcspn(rows[i].text, "^");
    snprintf(err.text, sizeof err.text, "%.*s%s", (int)err.place, rows[i].text, rows[i].text + err.place + 1);
    config_mask(&secrets, &err);
    assert_string_equal(err.text, rows[i].masked);
  }
  arena_free(&arena);
}

/* A plain word that came from the environment is in other texts by chance: there it stays, and only there. */
static void a_common_word_is_hidden_where_it_belongs(void **state) {
  static const struct {
    const char *word, *text;
    bool shown;
  } rows[] = {
      {"whole", DB "plugins: {p: {module: http, user_agent: \"${SECRET}\"}}\nengine: {lease: topic}\n", true},
      {"whole", DB "engine: {lease: topic, instance: \"${SECRET}\"}\n", false},
      {"whole", DB "engine: {lease: \"${SECRET}\"}\n", false},
      {"topic", DB "engine: {lease: topic}\nlog: {level: \"${SECRET}\"}\n", true},
      {"topic77", DB "engine: {lease: topic77}\nlog: {level: \"${SECRET}\"}\n", false},
      {"localhost", DB "plugins: {p: {module: kafka, brokers: \"${SECRET}:99999\"}}\n", false},
  };
  struct config_fixture f;
  assert_int_equal(config_set_up(&f), 0);
  for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
    char lines[FINDINGS_MAX] = "";
    struct err err = {0};
    setenv("SECRET", rows[i].word, 1);
    assert_false(is_right(&f, rows[i].text, lines, &err) && rows[i].shown);
    const char *engine = strstr(lines, "engine.lease: ");
    if (!strstr(engine ? engine : lines, rows[i].word) == rows[i].shown)
      fail_msg("%zu: %s\nsays: %s", i, rows[i].text, lines);
  }
  config_tear_down(&f);
}

/* As many tools take it: the errors about it quoted it. */
static void a_password_in_an_address_is_hidden(void **state) {
  static const char *const rows[] = {
      DB "plugins: {p: {module: http, proxy: \"u:Zaun77Pf@proxy\"}}\n",
      DB "plugins: {p: {module: kafka, brokers: \"u:Zaun77Pf@h:99999\"}}\n",
      "database: {host: \"u:Zaun77Pf@h\", user: u, name: n}\nengine: {lease: x}\n",
  };
  struct config_fixture f;
  assert_int_equal(config_set_up(&f), 0);
  for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
    char lines[FINDINGS_MAX] = "";
    struct err err = {0};
    assert_false(is_right(&f, rows[i], lines, &err));
    assert_true(lines[0] || err.text[0]);
    if (strstr(lines, "Zaun77Pf") || strstr(err.text, "Zaun77Pf"))
      fail_msg("%s\nsays: %s%s", rows[i], lines, err.text);
  }
  config_tear_down(&f);
}

/* A text of the largest size with nothing but secrets has an end. */
static void a_text_may_be_full(void **state) {
  struct arena *arena = arena_new();
  struct config_secrets secrets = {0};
  struct err err = {0};
  config_secrets_add(&secrets, arena, NULL, "abcd");
  for (size_t i = 0; i + 1 < sizeof err.text; i++)
    err.text[i] = "abcd "[i % 5];
  config_mask(&secrets, &err);
  assert_null(strstr(err.text, "abcd"));
  assert_true(strlen(err.text) < sizeof err.text);
  arena_free(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(no_error_quotes_a_secret),           cmocka_unit_test(no_name_that_is_not_found_is_quoted),
      cmocka_unit_test(the_rest_of_the_text_stays),         cmocka_unit_test(a_common_word_is_hidden_where_it_belongs),
      cmocka_unit_test(a_password_in_an_address_is_hidden), cmocka_unit_test(a_text_may_be_full)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
