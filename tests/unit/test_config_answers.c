/* SPDX-License-Identifier: MIT
 *
 * On which entries of results the consumers of each route answer (P7): whoever may write to one topic or queue speaks
 * for no other's consumers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "config_fixture.h"
#include "core/base/log.h"

#define PLUGINS                                                                                                        \
  "database: {user: duebox, name: shop}\n"                                                                             \
  "plugins: {bus: {module: \"null\"}, rabbit: {module: \"null\"}, hooks: {module: null_long}}\n"

static int set_up(void **state) {
  struct config_fixture *f = calloc(1, sizeof *f);
  *state = f;
  return f ? config_set_up(f) : 1;
}

static int tear_down(void **state) {
  config_tear_down(*state);
  free(*state);
  return 0;
}

/* What was logged while it was loaded is in said. */
static struct config *load(const struct config_fixture *f, const char *yaml, char *said, size_t cap) {
  struct err err = {0};
  char path[128];
  config_write(f, "duebox.yaml", yaml, 0600);
  snprintf(path, sizeof path, "%s/log", f->folder);
  FILE *log = fopen(path, "w+");
  assert_non_null(log);
  log_setup(LOG_LEVEL_WARN, LOG_FORMAT_LOGFMT, fileno(log));
  struct config *config = config_try(f, &err);
  log_setup(LOG_LEVEL_WARN, LOG_FORMAT_LOGFMT, STDERR_FILENO);
  rewind(log);
  said[fread(said, 1, cap - 1, log)] = '\0';
  fclose(log);
  unlink(path);
  if (!config)
    fail_msg("%s\n%s", err.text, yaml);
  return config;
}

static const struct {
  const char *what, *results, *route; /* the keys of the route r.x */
  const char *entries;                /* those on which it answers */
} roads[] = {
    {"one entry for each broker", "[{via: bus, topic: t}, {via: rabbit, topic: t}]", "via: bus, result: expected",
     "bus#1"},
    {"the other broker's topic of the same name is not its", "[{via: rabbit, topic: t}, {via: bus, topic: t}]",
     "via: bus, result: expected, reply_to: t", "bus#1"},
    {"the first entry of its plugin, where it is told nothing else", "[{via: bus, topic: t}, {via: bus, topic: u}]",
     "via: bus, result: expected", "bus#1"},
    {"the one that it is told", "[{via: bus, topic: t}, {via: bus, topic: u}]",
     "via: bus, result: expected, reply_to: u", "bus#2"},
    {"two readers of one topic", "[{via: bus, topic: t}, {via: bus, topic: t}]", "via: bus, result: expected",
     "bus#1 bus#2"},
    {"an answer over another broker that is named", "[{via: bus, topic: t}, {via: rabbit, topic: u}]",
     "via: bus, result: expected, reply_to: u", "rabbit#1"},
    {"nowhere here", "[{via: bus, topic: t}]", "via: bus, result: expected, reply_to: else", ""},
    {"a list goes before reply_to", "[{via: bus, topic: t}, {via: rabbit, topic: u, routes: [r.x]}]",
     "via: bus, result: expected", "bus#1 rabbit#1"},
    {"one that lists it goes before one without a list", "[{via: bus, topic: t}, {via: bus, topic: u, routes: r.x}]",
     "via: bus, result: expected", "bus#2"},
    {"a list without it", "[{via: bus, topic: t, routes: [\"s.*\"]}, {via: bus, topic: u}]",
     "via: bus, result: expected", "bus#2"},
    {"a list without it, though it is told to answer there", "[{via: bus, topic: t, routes: \"s.*\"}]",
     "via: bus, result: expected, reply_to: t", ""},
    {"patterns", "[{via: bus, topic: t, routes: [s.x, \"r.*\"]}, {via: bus, topic: u, routes: \"r.??\"}]",
     "via: bus, result: expected", "bus#1"},
    {"a route that expects none was perhaps changed since, and its topic is the same", "[{via: bus, topic: t}]",
     "via: bus", "bus#1"},
    {"a route that answers by calls", "[{via: bus, topic: t}]", "via: hooks", ""},
    {"a route that answers by calls, and later over a broker", "[{via: bus, topic: t, routes: r.x}]", "via: hooks",
     "bus#1"},
};

/* What a row keeps of where its consumer is told to answer is an entry that takes its results. */
static void assert_told_what_it_takes(const struct config *config) {
  const struct route_config *route = &config->routes[0];
  bool taken = false, told = false;
  for (size_t s = 0; s < config->source_count; s++) {
    const char *entry = config->sources[s].name;
    told = told || config_answer_to(config, entry) == route->answer_to;
    taken = taken ||
            (config_answer_to(config, entry) == route->answer_to && config_answers_on(config, entry, "r.x", route));
  }
  assert_int_equal(taken, told);
  assert_int_equal(told, route->answer_to != 0);
}

/* A broker and its topic have a name that stays when entries come, go and change places; two topics have two. */
static void test_names_that_rows_keep(void **state) {
  char said[4096];
  struct config *config = load(*state,
                               PLUGINS "results: [{via: bus, topic: t}, {via: rabbit, topic: u}]\n"
                                       "routes: {r.x: {via: bus, result: expected}}\n",
                               said, sizeof said);
  struct config *other = load(*state,
                              PLUGINS "results: [{via: bus, topic: u}, {via: rabbit, topic: t}, "
                                      "{via: bus, topic: t}]\n",
                              said, sizeof said);
  uint64_t name = config->routes[0].answer_to;
  assert_true(name != 0 && name == config_answer_to(config, "bus#1") && name == config_answer_to(other, "bus#2"));
  assert_true(name != config_answer_to(config, "rabbit#1") && name != config_answer_to(other, "bus#1"));
  assert_true(name != config_answer_to(other, "rabbit#1") && config_answer_to(config, "nobody#1") == 0);
  config_free(&config);
  config_free(&other);
}

static void test_roads(void **state) {
  for (size_t i = 0; i < sizeof roads / sizeof roads[0]; i++) {
    char yaml[1024], said[4096], entries[64] = "";
    snprintf(yaml, sizeof yaml, PLUGINS "results: %s\nroutes: {r.x: {%s}}\n", roads[i].results, roads[i].route);
    struct config *config = load(*state, yaml, said, sizeof said);
    for (size_t s = 0; s < config->source_count; s++)
      if (config_answers_on(config, config->sources[s].name, "r.x", &config->routes[0]))
        snprintf(entries + strlen(entries), sizeof entries - strlen(entries), "%s%s", *entries ? " " : "",
                 config->sources[s].name);
    if (strcmp(entries, roads[i].entries) != 0)
      fail_msg("%s: it answers on \"%s\", not on \"%s\"", roads[i].what, entries, roads[i].entries);
    assert_false(config_answers_on(config, "nobody#1", "r.x", &config->routes[0]));
    bool listed = strstr(roads[i].results, "routes: r.x") || strstr(roads[i].results, "\"r.*\"");
    assert_int_equal(config->routes[0].result_awaited, listed || strstr(roads[i].route, "result: expected"));
    assert_told_what_it_takes(config);
    config_free(&config);
  }
}

/* A route that only another daemon has, or that was removed while results were out: nothing is known of its road. */
static void test_an_unknown_route(void **state) {
  char said[4096];
  struct config *config = load(
      *state, PLUGINS "results: [{via: bus, topic: t}, {via: bus, topic: u, routes: [\"a.*\"]}]\n", said, sizeof said);
  assert_true(config_answers_on(config, "bus#1", "b.x", NULL));
  assert_false(config_answers_on(config, "bus#2", "b.x", NULL));
  assert_true(config_answers_on(config, "bus#2", "a.x", NULL));
  config_free(&config);
}

/* Consumers are told of an entry that takes their results. */
static void test_reply_to(void **state) {
  char said[4096];
  struct config *config =
      load(*state,
           PLUGINS "results: [{via: bus, topic: u}, {via: bus, topic: t, routes: b.x}]\n"
                   "routes: {a.x: {via: bus, result: expected}, b.x: {via: bus, result: expected}}\n",
           said, sizeof said);
  assert_string_equal(config->routes[0].reply_to, "u");
  assert_string_equal(config->routes[1].reply_to, "t");
  assert_string_equal(said, "");
  config_free(&config);
}

/* What worked while every entry took every result, and needs a line now, is said by check and at the start. */
static void test_what_needs_a_line_is_said(void **state) {
  char said[4096];
  struct config *config = load(*state,
                               PLUGINS "results: [{via: bus, topic: t}, {via: bus, topic: u}]\n"
                                       "routes: {a.x: {via: bus, result: expected},\n"
                                       "  b.x: {via: rabbit, result: expected, reply_to: r}}\n",
                               said, sizeof said);
  config_free(&config);
  assert_non_null(strstr(said, "DUEBOX-CONFIG-ANSWERS"));
  assert_null(strstr(said, "bus#1:"));
  assert_non_null(strstr(said, ": bus#2: no route of this configuration answers there"));
  assert_null(strstr(said, "a.x"));
  assert_non_null(strstr(said, ": b.x: its reply_to is no topic or queue of results here"));
}

/* One queue that two entries read for different routes: the broker shares its messages out among them. */
static void test_two_entries_on_one_queue_are_said(void **state) {
  static const struct {
    const char *other, *results;
    bool warns;
  } rows[] = {
      {"amqp://b@mq:5672/shop", "[{via: one, topic: q}, {via: other, topic: q}]", true},
      {"amqp://a@mq:5672/shop", "[{via: one, topic: q}, {via: other, topic: q, routes: b.x}]", true},
      {"amqp://b@mq:5672/shop", "[{via: one, topic: q}, {via: other, topic: p}]", false},
      {"amqp://b@mq:5672/till", "[{via: one, topic: q}, {via: other, topic: q}]", false},
      {"amqp://b@mq:5672/till", "[{via: other, topic: p}, {via: one, topic: q}, {via: one, topic: q, routes: b.x}]",
       true},
      {"amqp://b@mq:5672/till", "[{via: other, topic: p}, {via: one, topic: q}, {via: one, topic: q}]", false},
      {"amqp://b@mq:5672/shop", "[{via: one, topic: q, routes: \"*.x\"}, {via: other, topic: q, routes: [a.x, b.x]}]",
       false},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    char yaml[1024], said[4096];
    snprintf(
        yaml, sizeof yaml,
        "database: {user: duebox, name: shop}\n"
        "plugins: {one: {module: \"null\", url: \"amqp://a@mq:5672/shop\"}, other: {module: \"null\", url: \"%s\"}}\n"
        "routes: {a.x: {via: one, result: expected}, b.x: {via: other, result: expected}}\nresults: %s\n",
        rows[i].other, rows[i].results);
    struct config *config = load(*state, yaml, said, sizeof said);
    config_free(&config);
    const char *warning = strstr(said, ": one#1 reads ");
    if ((warning != NULL) != rows[i].warns)
      fail_msg("row %zu: %s", i, said);
  }
}

/* Each of its tasks would be called until it is dead, although the consumer took it the first time. */
static void test_a_call_without_a_callback_url_is_said(void **state) {
  static const struct {
    const char *route, *more;
    bool warns;
  } rows[] = {
      {"result: expected", "", true},
      {"result: none", "", false},
      {"result: expected", "callbacks: {listen: \"127.0.0.1:8322\", secret: 0123456789abcdef}\n", false},
      {"result: expected", "results: [{via: bus, topic: t, routes: r.x}]\n", false},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    char yaml[512], said[4096];
    snprintf(yaml, sizeof yaml, PLUGINS "routes: {r.x: {via: hooks, %s}}\n%s", rows[i].route, rows[i].more);
    struct config *config = load(*state, yaml, said, sizeof said);
    config_free(&config);
    if ((strstr(said, ": r.x: callbacks.listen is off") != NULL) != rows[i].warns)
      fail_msg("row %zu: %s", i, said);
  }
}

static const struct {
  const char *routes, *text;
} wrong[] = {
    {"[\"a x\"]", "\"a x\" is no name of a route"},
    {"[\"[ab]\"]", "\"[ab]\" is no name of a route"},
    {"[\"\"]", "\"\" is no name of a route"},
    {"[]", "is empty; list the routes that answer there, or leave it out"},
    {"{a: b}", "must be one value, not a map"},
};

static void test_lists_that_are_wrong(void **state) {
  const struct config_fixture *f = *state;
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    char yaml[1024];
    struct err err = {0};
    snprintf(yaml, sizeof yaml, PLUGINS "results: [{via: bus, topic: t, routes: %s}]\nroutes: {a.x: {via: bus}}\n",
             wrong[i].routes);
    config_write(f, "duebox.yaml", yaml, 0600);
    assert_null(config_try(f, &err));
    if (!strstr(err.text, wrong[i].text))
      fail_msg("%s: %s", wrong[i].routes, err.text);
  }
}

/* A route into a topic of results: its tasks would be read as answers. */
static void test_a_target_that_results_are_read_from(void **state) {
  static const struct {
    const char *what, *via, *topic, *error;
    bool warns;
    size_t refused; /* topics that no task may lead to */
  } rows[] = {
      {"the instance that reads it", "one", "t", "\"t\" is where one#1 reads results", false, 0},
      {"by the route's name", "one", "\"{route}\"", "\"r.x\" is where one#2 reads results", false, 0},
      {"an instance of the same broker", "same", "t", "\"t\" is where one#1 reads results", false, 0},
      {"perhaps the same broker", "other", "t", NULL, true, 0},
      {"another topic", "one", "u", NULL, false, 0},
      {"what the row says", "one", "\"{task_key}\"", NULL, false, 2},
      {"whichever instance it is", "other", "\"a{header.x}\"", NULL, false, 2},
      {"another kind of destination", "hooks", "t", NULL, false, 0},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    char yaml[1024], said[4096] = "";
    struct err err = {0};
    snprintf(yaml, sizeof yaml,
             "database: {user: duebox, name: shop}\n"
             "plugins: {one: {module: \"null\", url: \"amqp://a@mq/shop\"}, same: {module: \"null\", url: "
             "\"amqp://b@mq/shop\"}, other: {module: \"null\", url: \"amqp://a@mx/shop\"}, hooks: {module: "
             "null_long}}\n"
             "routes: {r.x: {via: %s, topic: %s}}\nresults: [{via: one, topic: t, routes: r.x}, {via: one, topic: "
             "r.x, routes: r.x}]\n",
             rows[i].via, rows[i].topic);
    config_write(*state, "duebox.yaml", yaml, 0600);
    struct config *config = rows[i].error ? config_try(*state, &err) : load(*state, yaml, said, sizeof said);
    if (rows[i].error ? config || !strstr(err.text, rows[i].error) : !config)
      fail_msg("%s: %s", rows[i].what, err.text);
    if ((strstr(said, "is where one#1 reads results: where the two") != NULL) != rows[i].warns)
      fail_msg("%s: %s", rows[i].what, said);
    if (config && config->routes[0].answers_at.count != rows[i].refused)
      fail_msg("%s: %zu", rows[i].what, config->routes[0].answers_at.count);
    config_free(&config);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_a_target_that_results_are_read_from, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_roads, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_names_that_rows_keep, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_an_unknown_route, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_reply_to, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_two_entries_on_one_queue_are_said, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_a_call_without_a_callback_url_is_said, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_what_needs_a_line_is_said, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_lists_that_are_wrong, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
