/* SPDX-License-Identifier: MIT
 *
 * tests/unit/test_cli_select.c - ids and filters of a command line as a task filter.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>
#include <sysexits.h>

#include "cli/select.h"

static bool read_line(const char **argv, int argc, bool priority_selects, struct args *args,
                      struct selection *selection, struct err *err) {
  *err = (struct err){0};
  assert_true(args_parse(argc, (char **)argv, args, err));
  return select_read(args, priority_selects, selection, err);
}

#define READ(priority, ...)                                                                                            \
  read_line((const char *[]){"duebox", __VA_ARGS__, NULL}, (int)ARRAY_LEN(((const char *[]){"duebox", __VA_ARGS__})),  \
            priority, &args, &selection, &err)

static void every_filter(void **state) {
  struct args args;
  struct selection selection;
  struct err err;
  assert_true(READ(true, "task", "list", "--route", "a.b", "-s", "dead,held", "--key", "k'1", "--error", "http.503",
                   "--due-before", "+1s", "--due-after", "now", "--created-before", "1970-01-02", "--created-after",
                   "-1s", "-p", "7", "--where", "1=1"));
  const struct task_filter *f = &selection.filter;
  assert_string_equal(f->route, "a.b");
  assert_int_equal(f->states, STATE_BIT(TASK_DEAD) | STATE_BIT(TASK_HELD));
  assert_string_equal(f->key, "k'1");
  assert_string_equal(f->error_class, "http.503");
  assert_int_equal(f->due_before_us, 1000000);
  assert_int_equal(f->due_after_us, 0);
  assert_int_equal(f->created_before_us, INT64_C(86400000000));
  assert_int_equal(f->created_after_us, -1000000);
  assert_int_equal(f->priority, 7);
  assert_string_equal(f->where, "1=1");
  assert_int_equal(selection.relative_times, 0x1 | 0x2 | 0x8); /* all but --created-before */
  assert_false(selection.by_ids);
  assert_true(selection.filtered && selection.states_given);
  assert_string_equal(selection.words,
                      "--route a.b --state dead,held --key k'1 --error http.503 --due-before +1s --due-after now "
                      "--created-before 1970-01-02 --created-after -1s --priority 7 --where 1=1");
  args_free(&args);
}

static void ids(void **state) {
  struct args args;
  struct selection selection;
  struct err err;
  assert_true(READ(true, "task", "cancel", "17", "--reason", "x", "m-1"));
  assert_true(selection.by_ids);
  assert_false(selection.filtered);
  assert_int_equal(selection.filter.id_count, 2);
  assert_string_equal(selection.filter.ids[1], "m-1");
  assert_string_equal(selection.words, "17 m-1");
  args_free(&args);
  assert_false(READ(true, "task", "cancel", "17", "--route", "x"));
  assert_string_equal(err.text, "give ids or filters, not both: an id names its task whatever a filter says");
  args_free(&args);
}

static void a_priority_that_is_a_value_selects_nothing(void **state) {
  struct args args;
  struct selection selection;
  struct err err;
  assert_true(READ(false, "task", "set", "--priority", "9"));
  assert_false(selection.filtered);
  assert_int_equal(selection.filter.priority, 0);
  assert_string_equal(selection.words, "");
  args_free(&args);
}

static void wrong_values(void **state) {
  struct args args;
  struct selection selection;
  struct err err;
  assert_false(READ(true, "task", "list", "--state", "dead,,held"));
  assert_non_null(strstr(err.text, "--state: \"\" is no state; they are scheduled"));
  args_free(&args);
  assert_false(READ(true, "task", "list", "--state", "deaf"));
  assert_int_equal(err.code, EX_USAGE);
  args_free(&args);
  assert_false(READ(true, "task", "list", "--where", " \t"));
  assert_string_equal(err.text, "--where: the condition is empty");
  args_free(&args);
  assert_false(READ(true, "task", "list", "--priority", "0"));
  args_free(&args);
  assert_false(READ(true, "task", "list", "--due-before", "soon"));
  args_free(&args);
}

static void state_words(void **state) {
  struct err err;
  uint32_t bits;
  assert_true(states_parse("living", &bits, &err));
  assert_int_equal(bits, STATES_LIVING);
  assert_true(states_parse("final,scheduled", &bits, &err));
  assert_int_equal(bits, STATES_FINAL | STATE_BIT(TASK_SCHEDULED));
  assert_true(states_parse("all", &bits, &err));
  assert_int_equal(bits, (1u << TASK_STATES) - 1);
  for (int i = 0; i < TASK_STATES; i++) {
    assert_true(states_parse(task_state_text((enum task_state)i), &bits, &err));
    assert_int_equal(bits, STATE_BIT(i));
  }
}

static void long_words_are_cut(void **state) {
  struct args args;
  struct selection selection;
  struct err err;
  char where[2000];
  memset(where, '1', sizeof where - 1);
  where[sizeof where - 1] = '\0';
  assert_true(READ(true, "task", "list", "--where", where));
  assert_int_equal(strlen(selection.words), sizeof selection.words - 1);
  assert_string_equal(selection.words + sizeof selection.words - 4, "...");
  args_free(&args);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_filter),
      cmocka_unit_test(ids),
      cmocka_unit_test(a_priority_that_is_a_value_selects_nothing),
      cmocka_unit_test(wrong_values),
      cmocka_unit_test(state_words),
      cmocka_unit_test(long_words_are_cut),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
