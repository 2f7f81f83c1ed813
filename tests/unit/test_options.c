/* SPDX-License-Identifier: MIT
 *
 * tests/unit/test_options.c - the option engine: every type, set by every way, printed, compared; and the suggestions.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/config_rows.h"
#include "core/options.h"
#include "core/yaml.h"

static int set_up(void **state) {
  *state = arena_new();
  return 0;
}

static int tear_down(void **state) {
  struct arena *arena = *state;
  arena_free(&arena);
  return 0;
}

/* Durations, sizes, rates, numbers */

static void test_durations(void **state) {
  static const struct {
    const char *text;
    int64_t ms;
  } good[] = {{"0", 0},
              {"0s", 0},
              {"250ms", 250},
              {"30s", 30000},
              {"15m", 900000},
              {"1h", 3600000},
              {"2d", 172800000},
              {"1h30m", 5400000},
              {"1d2h3m4s5ms", 93784005},
              {"365000d", INT64_C(31536000000000)}};
  static const char *const bad[] = {"",
                                    "30",
                                    "s",
                                    "-5s",
                                    "1.5s",
                                    "5 s",
                                    "5S",
                                    "5w",
                                    "5s ",
                                    " 5s",
                                    "1h30",
                                    "s5",
                                    "1m1h", /* perhaps a month */
                                    "1s1s",
                                    "1ms1s",
                                    "1h1d1m",
                                    "99999999999999999999d",
                                    "9999999999d", /* would overflow as microseconds */
                                    "365000d1ms",
                                    "9223372036854775807d"};
  int64_t ms;
  struct err err;
  for (size_t i = 0; i < ARRAY_LEN(good); i++) {
    assert_true(option_parse_duration(good[i].text, &ms, &err));
    assert_int_equal(ms, good[i].ms);
  }
  for (size_t i = 0; i < ARRAY_LEN(bad); i++)
    if (option_parse_duration(bad[i], &ms, &err))
      fail_msg("accepted \"%s\"", bad[i]);
}

static void test_sizes(void **state) {
  static const struct {
    const char *text;
    int64_t bytes;
  } good[] = {{"0", 0},          {"1000000", 1000000}, {"5B", 5},           {"64KiB", 65536},    {"64KB", 64000},
              {"1MiB", 1048576}, {"3MB", 3000000},     {"2GB", 2000000000}, {"2GiB", 2147483648}};
  static const char *const bad[] = {"", "KiB", "-1", "1.5MiB", "1M", "1mb", "1 MiB", "9999999999GiB", "1KiB2"};
  int64_t bytes;
  struct err err;
  for (size_t i = 0; i < ARRAY_LEN(good); i++) {
    assert_true(option_parse_size(good[i].text, &bytes, &err));
    assert_int_equal(bytes, good[i].bytes);
  }
  for (size_t i = 0; i < ARRAY_LEN(bad); i++)
    if (option_parse_size(bad[i], &bytes, &err))
      fail_msg("accepted \"%s\"", bad[i]);
}

static void test_rates_and_numbers(void **state) {
  static const struct {
    const char *text;
    double value;
  } rates[] = {{"0", 0}, {"100/s", 100}, {"6000/m", 100}, {"36/h", 0.01}, {"0.5/s", 0.5}},
    numbers[] = {{"0", 0}, {"2", 2}, {"0.2", 0.2}, {"-1.25", -1.25}, {"1000000", 1000000}, {".5", 0.5}, {"5.", 5}};
  static const char *const bad_rates[] = {"", "100", "/s", "100/d", "-1/s", "100 /s", "1e3/s", "inf/s"};
  static const char *const bad_numbers[] = {
      "", ".", "-", "1e3", "nan", "inf", "0x10", "1.2.3", "1,5", "1234567890123456", "2 "};
  double value;
  struct err err;
  for (size_t i = 0; i < ARRAY_LEN(rates); i++) {
    assert_true(option_parse_rate(rates[i].text, &value, &err));
    assert_true(fabs(value - rates[i].value) < 1e-12);
  }
  for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
    assert_true(option_parse_number(numbers[i].text, &value, &err));
    assert_true(fabs(value - numbers[i].value) < 1e-15);
  }
  for (size_t i = 0; i < ARRAY_LEN(bad_rates); i++)
    if (option_parse_rate(bad_rates[i], &value, &err))
      fail_msg("accepted \"%s\"", bad_rates[i]);
  for (size_t i = 0; i < ARRAY_LEN(bad_numbers); i++)
    if (option_parse_number(bad_numbers[i], &value, &err))
      fail_msg("accepted \"%s\"", bad_numbers[i]);
}

static void test_ints_and_bools(void **state) {
  static const char *const bad_ints[] = {"", "-", "1.0", "0x1", "1_000", " 1", "9223372036854775808", "+1"};
  static const char *const yes[] = {"true", "yes", "on"}, *const no[] = {"false", "no", "off"};
  static const char *const bad_bools[] = {"", "True", "1", "y"};
  int64_t value;
  bool flag;
  struct err err;
  assert_true(option_parse_int("-9223372036854775807", &value, &err));
  assert_int_equal(value, -INT64_MAX);
  for (size_t i = 0; i < ARRAY_LEN(bad_ints); i++)
    if (option_parse_int(bad_ints[i], &value, &err))
      fail_msg("accepted \"%s\"", bad_ints[i]);
  for (size_t i = 0; i < ARRAY_LEN(yes); i++) {
    assert_true(option_parse_bool(yes[i], &flag, &err) && flag);
    assert_true(option_parse_bool(no[i], &flag, &err) && !flag);
  }
  for (size_t i = 0; i < ARRAY_LEN(bad_bools); i++)
    assert_false(option_parse_bool(bad_bools[i], &flag, &err));
}

/* One row of each type */

struct all {
  const char *text, *secret, *key;
  bool flag;
  int64_t number, size, duration;
  double rate, fraction;
  int choice;
  struct duebox_list list;
  struct duebox_durations waits;
  struct duebox_map map;
};

static const char *const choices[] = {"one", "two", NULL};

#define AT(field) offsetof(struct all, field)
#define ROWS(text_def, number_def, choice_def, waits_def)                                                              \
  {                                                                                                                    \
    {"text", DUEBOX_OPT_STRING, text_def, 0, 0, 0, AT(text), NULL, "a text"},                                          \
        {"secret", DUEBOX_OPT_SECRET, NULL, 0, 0, 0, AT(secret), NULL, "a secret"},                                    \
        {"key", DUEBOX_OPT_STRING, NULL, 0, 0, DUEBOX_OPT_TEMPLATE, AT(key), NULL, "a template"},                      \
        {"flag", DUEBOX_OPT_BOOL, NULL, 0, 0, 0, AT(flag), NULL, "a flag"},                                            \
        {"number", DUEBOX_OPT_INT, number_def, -5, 5, 0, AT(number), NULL, "a number"},                                \
        {"size", DUEBOX_OPT_SIZE, "1KiB", 0, 0, 0, AT(size), NULL, "a size"},                                          \
        {"duration", DUEBOX_OPT_DURATION, "90s", 0, 0, 0, AT(duration), NULL, "a duration"},                           \
        {"rate", DUEBOX_OPT_RATE, "0", 0, 0, 0, AT(rate), NULL, "a rate"},                                             \
        {"fraction", DUEBOX_OPT_NUMBER, "0.25", 0, 0, 0, AT(fraction), NULL, "a fraction"},                            \
        {"choice", DUEBOX_OPT_ENUM, choice_def, 0, 0, 0, AT(choice), choices, "a choice"},                             \
        {"list", DUEBOX_OPT_LIST, NULL, 0, 0, 0, AT(list), NULL, "a list"},                                            \
        {"waits", DUEBOX_OPT_DURATIONS, waits_def, 0, 0, 0, AT(waits), NULL, "waits"},                                 \
        {"map", DUEBOX_OPT_MAP, NULL, 0, 0, 0, AT(map), NULL, "a map"}, {.name = NULL},                                \
  }

static const struct duebox_option rows[] = ROWS("t", "-3", "two", "5s, 30s,1m");

static bool fill(struct arena *arena, const struct duebox_option *table, const char *yaml, struct all *out,
                 struct err *err) {
  struct yaml_node *node = yaml_parse("f", yaml, strlen(yaml), arena, err);
  *out = (struct all){0};
  return node && options_fill(table, node, NULL, NULL, arena, out, err);
}

static void expect_printed(const struct all *all, const char *const *texts) {
  for (size_t i = 0; rows[i].name; i++) {
    char out[64];
    size_t len = option_print(&rows[i], all, out, sizeof out);
    assert_string_equal(out, texts[i]);
    assert_int_equal(len, strlen(texts[i]));
    char cut[3];
    assert_int_equal(option_print(&rows[i], all, cut, sizeof cut), len);
    assert_memory_equal(cut, out, len < 2 ? len : 2);
    assert_int_equal(cut[len < 2 ? len : 2], '\0');
  }
}

static void test_defaults(void **state) {
  static const char *const texts[] = {"t", "",     "",    "false", "-3",          "1KiB", "90s",
                                      "0", "0.25", "two", "",      "5s, 30s, 1m", ""};
  struct all all;
  struct err err;
  assert_true(fill(*state, rows, "{}", &all, &err));
  assert_null(all.secret);
  assert_null(all.key);
  expect_printed(&all, texts);
  struct all again = {0};
  assert_true(options_fill(rows, NULL, NULL, NULL, *state, &again, &err));
  assert_true(options_equal(rows, &all, &again));
}

static void test_given(void **state) {
  static const char *const texts[] = {"x: y",
                                      "***",
                                      "{route}-{{",
                                      "true",
                                      "5",
                                      "2MiB",
                                      "1500ms",
                                      "0.5/s",
                                      "-2",
                                      "one",
                                      "a, http://u:***@h",
                                      "1ms, 2d",
                                      "a.b=c, ssl.key.password=***"};
  struct all all;
  struct err err = {0};
  bool ok =
      fill(*state, rows,
           "text: 'x: y'\nsecret: geheim\nkey: '{route}-{{'\nflag: on\nnumber: 5\nsize: 2048KiB\nduration: 1500ms\n"
           "rate: 30/m\nfraction: -2\nchoice: one\nlist: [a, 'http://u:p@h']\nwaits: [1ms, 2d]\n"
           "map: {a.b: c, ssl.key.password: geheim}\n",
           &all, &err);
  if (!ok)
    fail_msg("%s", err.text);
  assert_string_equal(all.secret, "geheim");
  assert_string_equal(all.list.items[1], "http://u:p@h");
  assert_string_equal(all.map.items[1].value, "geheim");
  expect_printed(&all, texts);
  assert_true(fill(*state, rows, "list: alone\nwaits: 3s\n", &all, &err));
  assert_int_equal(all.list.count, 1);
  assert_string_equal(all.list.items[0], "alone");
  assert_int_equal(all.waits.count, 1);
  assert_int_equal(all.waits.ms[0], 3000);
  assert_true(fill(*state, rows, "list: []\nwaits: []\nmap: {}\n", &all, &err));
  assert_int_equal(all.list.count + all.waits.count + all.map.count, 0);
}

/* Each line changes one value; options_equal must see it. */
static void test_equal(void **state) {
  static const char *const changes[] = {"text: u",
                                        "secret: a",
                                        "key: k",
                                        "flag: true",
                                        "number: 1",
                                        "size: 1",
                                        "duration: 1s",
                                        "rate: 1/s",
                                        "fraction: 1",
                                        "choice: one",
                                        "list: [a]",
                                        "waits: [5s, 30s]",
                                        "waits: [5s, 30s, 2m]",
                                        "map: {a: b}"};
  struct all base, same, other;
  struct err err;
  assert_true(fill(*state, rows, "{}", &base, &err));
  assert_true(fill(*state, rows, "text: t", &same, &err));
  assert_true(options_equal(rows, &base, &same));
  for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
    assert_true(fill(*state, rows, changes[i], &other, &err));
    if (options_equal(rows, &base, &other))
      fail_msg("not seen: %s", changes[i]);
  }
  struct all one, two;
  assert_true(fill(*state, rows, "map: {a: b}\nlist: [x]", &one, &err));
  assert_true(fill(*state, rows, "map: {a: c}\nlist: [x]", &two, &err));
  assert_false(options_equal(rows, &one, &two));
  assert_true(options_equal(NULL, &one, &two));
}

static void test_bad_defaults(void **state) {
  static const struct duebox_option bad_number[] = ROWS("t", "17", "two", NULL);
  static const struct duebox_option bad_choice[] = ROWS("t", "1", "three", NULL);
  static const struct duebox_option bad_waits[] = ROWS("t", "1", "two", "5s 30s");
  struct all all;
  struct err err = {0};
  assert_false(fill(*state, bad_number, "{}", &all, &err));
  assert_string_equal(err.text, "the built-in default of \"number\" is wrong: 17 is too large; the largest is 5");
  assert_false(fill(*state, bad_choice, "{}", &all, &err));
  assert_string_equal(
      err.text, "the built-in default of \"choice\" is wrong: \"three\" is not a choice; choose one of: one, two");
  assert_false(fill(*state, bad_waits, "{}", &all, &err));
  assert_string_equal(err.text, "the built-in default of \"waits\" is wrong: \"5s 30s\" is not a list of durations; "
                                "separate them by commas: 5s, 30s, 1m");
}

static void test_required(void **state) {
  static const struct duebox_option table[] = {
      {"token", DUEBOX_OPT_SECRET, NULL, 0, 0, DUEBOX_OPT_REQUIRED, AT(secret), NULL, "a token"}, {.name = NULL}};
  struct all all;
  struct err err = {0};
  assert_false(fill(*state, table, "{}", &all, &err));
  assert_string_equal(err.text, "f:1:1: \"token\" or \"token_file\" must be given: a token");
  assert_false(options_fill(table, NULL, NULL, NULL, *state, &all, &err));
  assert_string_equal(err.text, "\"token\" must be given: a token");
  assert_false(fill(*state, table, "token_file: x", &all, &err));
  assert_string_equal(err.text, "f:1:13: token_file: secret files cannot be read here; give the value itself");
}

static void test_suggest(void **state) {
  static const char *const known[] = {"topic", "timeout", "via", "max_attempts", "concurrency"};
  static const char *const pairs[][2] = {
      {"topc", "topic"},
      {"tpoic", "topic"},
      {"topics", "topic"},
      {"time_out", "timeout"},
      {"vai", "via"},
      {"maxattempts", "max_attempts"},
      {"concurency", "concurrency"},
      {"konkurency", "concurrency"},
      {"xyz", NULL},
      {"", NULL},
      {"v", NULL},
      {"completely-different", NULL},
      {"topicccc", "topic"},
      {"topiccccc", NULL},
  };
  for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
    const char *near = option_suggest(pairs[i][0], known, ARRAY_LEN(known));
    if (pairs[i][1])
      assert_string_equal(near, pairs[i][1]);
    else
      assert_null(near);
  }
  char big[200];
  memset(big, 'a', sizeof big - 1);
  big[sizeof big - 1] = '\0';
  assert_null(option_suggest(big, known, ARRAY_LEN(known)));
  const char *const long_known[] = {big};
  assert_null(option_suggest("aaaa", long_known, 1));
}

/* The core's own tables obey the rules that plugins must obey; a default that does not parse shows here. */
static void test_core_rows(void **state) {
  static const struct {
    const struct duebox_option *table;
    size_t size;
    const char *yaml; /* what is required */
  } tables[] = {
      {config_database_rows, sizeof(struct database_config), "{user: u, name: n}"},
      {config_engine_rows, sizeof(struct engine_config), "{}"},
      {config_admin_rows, sizeof(struct admin_rows), "{}"},
      {config_log_rows, sizeof(struct log_config), "{}"},
      {config_route_rows, sizeof(struct route_rows), "{}"},
      {config_retry_rows, sizeof(struct retry_rows), "{}"},
      {config_alert_rows, sizeof(struct alert_rows), "{route: r}"},
  };
  for (size_t i = 0; i < ARRAY_LEN(tables); i++) {
    struct err err = {0};
    struct yaml_node *node = yaml_parse("f", tables[i].yaml, strlen(tables[i].yaml), *state, &err);
    if (!options_fill(tables[i].table, node, NULL, NULL, *state, arena_alloc(*state, tables[i].size), &err))
      fail_msg("table %zu: %s", i, err.text);
    for (const struct duebox_option *row = tables[i].table; row->name; row++) {
      assert_true(row->help && row->help[0] && row->help[strlen(row->help) - 1] != '\n');
      assert_true(row->offset < tables[i].size);
      for (const struct duebox_option *other = tables[i].table; other != row; other++) {
        assert_string_not_equal(other->name, row->name);
        assert_int_not_equal(other->offset, row->offset);
      }
    }
  }
  for (const struct duebox_option *row = config_route_rows; row->name; row++) {
    bool listed = false;
    for (const char *const *key = config_route_keys; *key; key++)
      listed = listed || strcmp(*key, row->name) == 0;
    assert_true(listed); /* else a plugin could take the name */
  }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {TEST(test_durations),      TEST(test_sizes),        TEST(test_rates_and_numbers),
                                     TEST(test_ints_and_bools), TEST(test_defaults),     TEST(test_given),
                                     TEST(test_equal),          TEST(test_bad_defaults), TEST(test_required),
                                     TEST(test_suggest),        TEST(test_core_rows)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
