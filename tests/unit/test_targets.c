/* SPDX-License-Identifier: MIT
 *
 * Targets in trouble: what makes one up, how many are known, and what people see of a name.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/targets.h"

struct options {
  const char *exchange, *key, *note;
};

#define ROW(field, what)                                                                                               \
  { .name = #field, .type = DUEBOX_OPT_STRING, .flags = (what), .offset = offsetof(struct options, field) }
static const struct duebox_option rows_of_options[] = {ROW(exchange, DUEBOX_OPT_TEMPLATE | DUEBOX_OPT_TARGET),
                                                       ROW(note, DUEBOX_OPT_TEMPLATE),
                                                       ROW(key, DUEBOX_OPT_TEMPLATE | DUEBOX_OPT_TARGET),
                                                       {.name = NULL}};

static size_t name_of(struct options options, const char *task_key, char name[TARGET_NAME_MAX + 1]) {
  const struct duebox_plugin module = {.route_options = rows_of_options};
  const struct plugin_config plugin = {.module = &module};
  const struct route_config route = {.plugin = &plugin, .options = &options};
  const struct duebox_task task = {.route = "orders", .key = {task_key, strlen(task_key)}, .message_id = "m"};
  return target_name(&route, &task, name);
}

static void a_target_is_what_its_templates_expand_to(void **state) {
  char name[TARGET_NAME_MAX + 1], other[TARGET_NAME_MAX + 1], huge[3 * TARGET_NAME_MAX];
  (void)name_of((struct options){"", "orders.{task_key}", "{message_id}"}, "de", name);
  assert_string_equal(name, "orders.de");
  (void)name_of((struct options){"events", "{task_key}", NULL}, "de", name);
  assert_string_equal(name, "events/de");
  (void)name_of((struct options){NULL, "{task_key}", NULL}, "", name);
  assert_string_equal(name, "");
  memset(huge, 'a', sizeof huge);
  huge[sizeof huge - 1] = '\0';
  size_t len = name_of((struct options){"x", "{task_key}", NULL}, huge, name);
  assert_int_equal(len, TARGET_NAME_MAX);
  assert_int_equal(strlen(name), TARGET_NAME_MAX);
  assert_int_equal(name_of((struct options){huge, "{task_key}", NULL}, "de", other), TARGET_NAME_MAX);
}

/* Who may only insert does not answer for other tasks. */
static void no_task_leads_to_where_results_are_read(void **state) {
  static const char *const answers[] = {"orders.results", "de"};
  static const struct {
    struct options options;
    const char *task_key;
    size_t key_len;
    bool refused;
  } rows[] = {
      {{"", "{task_key}", NULL}, "orders.results", 14, true},
      {{"", "{task_key}", NULL}, "orders.result", 13, false},
      {{"", "{task_key}", NULL}, "orders.results2", 15, false},
      {{"", "orders.{task_key}", NULL}, "results", 7, true},
      {{"events", "{task_key}", NULL}, "de", 2, true}, /* a queue may be bound by its name */
      {{"{task_key}", "x", NULL}, "de", 2, true},
      {{"", "x", "{task_key}"}, "de", 2, false},
      {{"", "{task_key}", NULL}, "de\0x", 4, true}, /* brokers get it as far as the NUL */
      {{"", "{task_key}", NULL}, "", 0, false},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    const struct duebox_plugin module = {.route_options = rows_of_options};
    const struct plugin_config plugin = {.module = &module};
    const struct route_config route = {.plugin = &plugin, .options = &rows[i].options, .answers_at = {answers, 2}};
    const struct duebox_task task = {.route = "r", .key = {rows[i].task_key, rows[i].key_len}, .message_id = "m"};
    struct err err = {0};
    if (target_permitted(&route, &task, &err) == rows[i].refused)
      fail_msg("row %zu: %s", i, err.text);
  }
}

/* However many names an application writes, memory stays bounded; the one met longest ago is forgotten. */
static void the_number_of_targets_is_bounded(void **state) {
  struct targets targets = {0}, more[TARGETS_MAX / TARGETS_PER_ROUTE] = {{0}};
  size_t total = 0;
  char name[32];
  for (int i = 0; i < 10000; i++) {
    int len = snprintf(name, sizeof name, "t%d", i);
    struct target *target = targets_make(&targets, name, (size_t)len, i, &total);
    assert_non_null(target);
    if (i == 0)
      target->health.state = HEALTH_PROBING; /* its probe is out and will come back */
  }
  assert_int_equal(total, TARGETS_PER_ROUTE);
  assert_non_null(targets_find(&targets, "t0", 2));
  assert_null(targets_find(&targets, "t1", 2));
  assert_non_null(targets_find(&targets, "t9999", 5));
  assert_ptr_equal(targets_make(&targets, "t9999", 5, 0, &total), targets_find(&targets, "t9999", 5));
  for (size_t r = 0; r < sizeof more / sizeof more[0]; r++)
    for (int i = 0; i < TARGETS_PER_ROUTE; i++) {
      int len = snprintf(name, sizeof name, "t%d", i);
      (void)targets_make(&more[r], name, (size_t)len, i, &total);
    }
  for (size_t r = 0; r < sizeof more / sizeof more[0]; r++)
    assert_true(more[r].count >= TARGETS_LEAST); /* however many those before it have (P8) */
  assert_int_equal(total, TARGETS_MAX + TARGETS_LEAST);
  for (size_t r = 0; r < sizeof more / sizeof more[0]; r++)
    targets_clear(&more[r], &total);
  targets_clear(&targets, &total);
  assert_int_equal(total, 0);
}

/* What stands in a URL beside its host is often a secret. */
static void a_label_shows_no_secret(void **state) {
  static const char *const labels[][2] = {
      {"orders.de", "orders.de"},
      {"what?ever@all", "what?ever@all"},
      {"https://a.example/hook/7?token=secret", "https://a.example/.. (task_key de)"},
      {"https://me:secret@a.example/hook", "https://a.example/.. (task_key de)"},

      {"https://a.example/x@y", "https://a.example/.. (task_key de)"},
      {"://", ":///.. (task_key de)"},
      {"", ""},
  };
  for (size_t i = 0; i < sizeof labels / sizeof labels[0]; i++) {
    struct targets targets = {0};
    size_t total = 0;
    char label[64];
    struct target *target = targets_make(&targets, labels[i][0], strlen(labels[i][0]), 0, &total);
    snprintf(target->task_key, sizeof target->task_key, "de");
    target_label(target->name, target->task_key, label, sizeof label);
    assert_string_equal(label, labels[i][1]);
    targets_clear(&targets, &total);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(no_task_leads_to_where_results_are_read),
      cmocka_unit_test(a_target_is_what_its_templates_expand_to),
      cmocka_unit_test(the_number_of_targets_is_bounded),
      cmocka_unit_test(a_label_shows_no_secret),
  };
  return cmocka_run_group_tests_name("targets", tests, NULL, NULL);
}
