/* SPDX-License-Identifier: MIT
 *
 * tests/unit/test_plugin_check.c - each rule for descriptors that no broken .so in tests/abi has, one change at a time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/plugin_check.h"

static bool create(void *inst, const struct duebox_instance_config *config, const struct duebox_host *host,
                   struct duebox_error *err) {
  return true;
}
static bool start(void *inst, struct duebox_error *err) { return true; }
static void poll_it(void *inst, int ms) {}
static void nothing(void *inst) {}
static size_t submit(void *inst, const struct duebox_task *const *tasks, size_t n) { return 0; }
static void ack(void *inst, uint64_t cookie, bool committed) {}

static const struct duebox_sink_ops sink = {.struct_size = sizeof sink, .submit = submit};
static const struct duebox_source_ops source = {.struct_size = sizeof source, .ack = ack, .resume = nothing};

static struct duebox_plugin sound(void) {
  return (struct duebox_plugin){
      DUEBOX_PLUGIN_PREFIX,
      .capabilities =
          DUEBOX_CAP_SINK | DUEBOX_CAP_SOURCE | DUEBOX_CAP_LONG_CALLS | DUEBOX_CAP_ANSWERS | DUEBOX_CAP_SHARED_LINE,
      .name = "sound",
      .version = "1",
      .summary = "has no fault",
      .create = create,
      .start = start,
      .poll = poll_it,
      .wakeup = nothing,
      .close = nothing,
      .stop = poll_it,
      .destroy = nothing,
      .sink = &sink,
      .source = &source,
  };
}

static void expect(const struct duebox_plugin *plugin, const char *fault) {
  struct plugin_faults faults;
  bool ok = plugin_check(plugin, &faults);
  if (!fault) {
    if (!ok)
      fail_msg("%s", faults.text[0]);
    assert_int_equal(faults.count, 0);
    return;
  }
  assert_false(ok);
  assert_int_equal(faults.count, 1);
  assert_string_equal(faults.text[0], fault);
}

static void test_sound(void **state) {
  struct duebox_plugin p = sound();
  expect(&p, NULL);
  p.size += 64; /* fields that this host does not know */
  expect(&p, NULL);
}

static void check_nothing(const void *options, struct duebox_check *const *checks, size_t count, int timeout_ms) {}

static size_t carry_nothing(const void *options, const void *route) { return 0; }

/* Plugins that people have built against 1.0 and 1.1 are still taken, and nothing behind their end is read. */
static void test_older_descriptors(void **state) {
  struct duebox_plugin p = sound();
  p.check_targets = check_nothing;
  p.max_checkpoint = carry_nothing;
  assert_true(plugin_check_targets(&p) == check_nothing && plugin_max_checkpoint(&p) == carry_nothing);
  p.size = offsetof(struct duebox_plugin, max_checkpoint); /* 1.2 to 1.5 */
  expect(&p, NULL);
  assert_true(plugin_check_targets(&p) == check_nothing && plugin_max_checkpoint(&p) == NULL);
  p.abi_minor = 0;
  p.size = offsetof(struct duebox_plugin, check_targets);
  expect(&p, NULL);
  assert_true(plugin_check_targets(&p) == NULL);
}

static void test_identity(void **state) {
  struct duebox_plugin p = sound();
  p.name = "";
  expect(&p, "it has no name");
  p = sound();
  p.version = NULL;
  expect(&p, "it has no version");
  p = sound();
  p.summary = NULL;
  expect(&p, "it has no summary");
}

static void test_capabilities(void **state) {
  static const struct duebox_sink_ops small = {.struct_size = 8, .submit = submit};
  static const struct duebox_source_ops no_resume = {.struct_size = sizeof no_resume, .ack = ack};
  struct duebox_plugin p = sound();
  p.capabilities = 0;
  p.sink = NULL;
  p.source = NULL;
  expect(&p, "it is neither a sink nor a source");
  p = sound();
  p.capabilities = DUEBOX_CAP_SOURCE | DUEBOX_CAP_ANSWERS;
  p.sink = NULL;
  expect(&p, "long calls, answers and a shared line are capabilities of sinks, and it is none");
  p = sound();
  p.capabilities = DUEBOX_CAP_SOURCE;
  expect(&p, "it has sink functions, but does not say sink");
  p = sound();
  p.capabilities = DUEBOX_CAP_SINK;
  expect(&p, "it has source functions, but does not say source");
  p = sound();
  p.source = NULL;
  expect(&p, "it says source, but has no source functions");
  p = sound();
  p.sink = &small;
  expect(&p, "its sink functions are incomplete: submit is wanted");
  p = sound();
  p.source = &no_resume;
  expect(&p, "its source functions are incomplete: ack and resume are wanted");
}

struct values {
  int64_t number;
  const char *text;
  int choice;
  bool flag;
};

#define NUMBER offsetof(struct values, number)
#define TEXT offsetof(struct values, text)
#define CHOICE offsetof(struct values, choice)

static const char *const none[] = {NULL};
static const char *const two[] = {"one", "two", NULL};

static const struct {
  struct duebox_option row;
  const char *fault; /* NULL = sound */
} rows[] = {
    {{"number", DUEBOX_OPT_INT, "5", -9, 9, DUEBOX_OPT_REQUIRED, NUMBER, NULL, "h"}, NULL},
    {{"a.b_c9", DUEBOX_OPT_STRING, "{route}", 0, 0, DUEBOX_OPT_TEMPLATE, TEXT, NULL, "h"}, NULL},
    {{"choice", DUEBOX_OPT_ENUM, "two", 0, 0, 0, CHOICE, two, "h"}, NULL},
    {{"Upper", DUEBOX_OPT_INT, NULL, 0, 0, 0, NUMBER, NULL, "h"},
     "route options: the name \"Upper\" must have 1 to 63 characters a-z, 0-9, \"_\" or \".\""},
    {{"", DUEBOX_OPT_INT, NULL, 0, 0, 0, NUMBER, NULL, "h"},
     "route options: the name \"\" must have 1 to 63 characters a-z, 0-9, \"_\" or \".\""},
    {{"n", DUEBOX_OPT_INT, NULL, 0, 0, 0, NUMBER, NULL, NULL}, "route options: \"n\" has no help text"},
    {{"timeout", DUEBOX_OPT_INT, NULL, 0, 0, 0, NUMBER, NULL, "h"},
     "route options: the name \"timeout\" belongs to duebox itself"},
    {{"n", (enum duebox_option_type)99, NULL, 0, 0, 0, NUMBER, NULL, "h"},
     "route options: \"n\" has the unknown type 99"},
    {{"n", (enum duebox_option_type)0, NULL, 0, 0, 0, NUMBER, NULL, "h"},
     "route options: \"n\" has the unknown type 0"},
    {{"n", DUEBOX_OPT_INT, NULL, 0, 0, 0, 1, NULL, "h"},
     "route options: \"n\" lies at offset 1, which is not aligned for its type"},
    {{"n", DUEBOX_OPT_MAP, NULL, 0, 0, 0, CHOICE, NULL, "h"},
     "route options: \"n\" at offset 16 does not fit into the struct of 24 bytes"},
    {{"n", DUEBOX_OPT_INT, NULL, 0, 0, 0, SIZE_MAX, NULL, "h"},
     "route options: \"n\" at offset 18446744073709551615 does not fit into the struct of 24 bytes"},
    {{"n", DUEBOX_OPT_INT, NULL, 0, 0, 0x20, NUMBER, NULL, "h"}, "route options: \"n\" has unknown flags 0x20"},
    {{"n", DUEBOX_OPT_INT, NULL, 0, 0, DUEBOX_OPT_FILE, NUMBER, NULL, "h"},
     "route options: \"n\" may come from a file, but is neither string nor map"},
    {{"n", DUEBOX_OPT_SECRET, NULL, 0, 0, DUEBOX_OPT_PATH, TEXT, NULL, "h"},
     "route options: \"n\" names a file, but is no string"},
    {{"n", DUEBOX_OPT_INT, NULL, 0, 0, DUEBOX_OPT_TEMPLATE, NUMBER, NULL, "h"},
     "route options: \"n\" is a template, but no string"},
    {{"n", DUEBOX_OPT_INT, NULL, 5, 1, 0, NUMBER, NULL, "h"}, "route options: \"n\" has a minimum above its maximum"},
    {{"n", DUEBOX_OPT_INT, "9", 1, 5, 0, NUMBER, NULL, "h"},
     "route options: the built-in default of \"n\" is wrong: 9 is too large; the largest is 5"},
    {{"n", DUEBOX_OPT_ENUM, NULL, 0, 0, 0, CHOICE, NULL, "h"}, "route options: \"n\" has no choices"},
    {{"n", DUEBOX_OPT_ENUM, "one", 0, 0, 0, CHOICE, none, "h"}, "route options: \"n\" has no choices"},
    {{"n", DUEBOX_OPT_STRING, "{nothing}", 0, 0, DUEBOX_OPT_TEMPLATE, TEXT, NULL, "h"},
     "route options: the built-in default of \"n\" is wrong: unknown placeholder {nothing}; there are {task_key}, "
     "{route}, "
     "{message_id}, {priority} and {header.NAME}"},
};

static void test_rows(void **state) {
  for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
    const struct duebox_option table[] = {rows[i].row, {.name = NULL}};
    struct duebox_plugin p = sound();
    p.route_options = table;
    p.route_size = sizeof(struct values);
    expect(&p, rows[i].fault);
  }
}

static void test_row_pairs(void **state) {
  static const struct duebox_option overlap[] = {
      {"a", DUEBOX_OPT_INT, NULL, 0, 0, 0, NUMBER, NULL, "h"},
      {"b", DUEBOX_OPT_BOOL, NULL, 0, 0, 0, NUMBER + 7, NULL, "h"},
      {.name = NULL},
  };
  struct duebox_plugin p = sound();
  p.source_options = overlap;
  p.source_size = sizeof(struct values);
  expect(&p, "source options: \"a\" and \"b\" overlap in the struct");
}

/* A table whose end was forgotten is not followed for ever. */
static void test_endless_table(void **state) {
  static struct duebox_option endless[300];
  struct plugin_faults faults;
  for (size_t i = 0; i < ARRAY_LEN(endless); i++)
    endless[i] = rows[0].row;
  struct duebox_plugin p = sound();
  p.options = endless;
  p.options_size = sizeof(struct values);
  assert_false(plugin_check(&p, &faults));
  assert_true(faults.count > PLUGIN_FAULTS_MAX); /* counted, not written beyond the room */
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_sound),        cmocka_unit_test(test_older_descriptors),
                                     cmocka_unit_test(test_identity),     cmocka_unit_test(test_capabilities),
                                     cmocka_unit_test(test_rows),         cmocka_unit_test(test_row_pairs),
                                     cmocka_unit_test(test_endless_table)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
