/* SPDX-License-Identifier: MIT
 *
 * A failure's text names each unit of work that it happened in, and each once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/err.h"

static void contexts_stand_before_the_text(void **state) {
  struct err err = {0};
  assert_false(err_set(&err, 7, "no answer"));
  assert_false(err_wrap(&err, "statement %d", 2));
  assert_false(err_wrap(&err, "migration 1"));
  assert_string_equal(err.text, "migration 1: statement 2: no answer");
  assert_int_equal(err.code, 7);
}

/* A unit of work and its only statement have one name: "changing tasks: changing tasks: .." said it twice. */
static void a_context_that_is_there_is_not_put_there_again(void **state) {
  struct err err = {0};
  err_set(&err, 7, "changing tasks: table full");
  err_wrap(&err, "changing tasks");
  assert_string_equal(err.text, "changing tasks: table full");
  err_wrap(&err, "changing");
  assert_string_equal(err.text, "changing: changing tasks: table full");
}

static void a_long_text_is_cut_at_its_end(void **state) {
  struct err err = {0};
  char text[sizeof err.text], context[sizeof err.text + 10];
  memset(text, 'x', sizeof text - 1);
  text[sizeof text - 1] = '\0';
  memset(context, 'c', sizeof context - 1);
  context[sizeof context - 1] = '\0';
  err_set(&err, 7, "%s", text);
  err_wrap(&err, "context");
  assert_int_equal(strlen(err.text), sizeof err.text - 1);
  assert_memory_equal(err.text, "context: xxx", 12);
  err_wrap(&err, "%s", context);
  assert_int_equal(strlen(err.text), sizeof err.text - 1);
  assert_int_equal(err.text[sizeof err.text - 2], 'c');
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(contexts_stand_before_the_text),
      cmocka_unit_test(a_context_that_is_there_is_not_put_there_again),
      cmocka_unit_test(a_long_text_is_cut_at_its_end),
  };
  return cmocka_run_group_tests_name("err", tests, NULL, NULL);
}
