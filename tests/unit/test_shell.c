/* SPDX-License-Identifier: MIT
 *
 * Commands that duebox proposes hold names of strangers: whoever may insert a task names its route, and an operator who
 * copies the command must not run what the name says.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/shell.h"

static void word_is(const char *text, const char *word) {
  char out[SHELL_ROOM(65)];
  assert_ptr_equal(shell_word(out, sizeof out, text), out);
  assert_string_equal(out, word);
}

static void quotes_are_written_where_they_are_needed(void **state) {
  word_is("orders.cancel", "orders.cancel");
  word_is("http://x/y-z_%+,@1", "http://x/y-z_%+,@1");
  word_is("", "''");
  word_is("a b", "'a b'");
  word_is("$(touch${IFS}/tmp/x)", "'$(touch${IFS}/tmp/x)'");
  word_is("~root", "'~root'");
  word_is("=ls", "'=ls'");
  word_is("it's", "'it'\\''s'");
  word_is("'", "''\\'''");
  word_is("a\nb", "'a\nb'");
}

/* The shell itself is asked. */
static void the_shell_reads_what_was_written(void **state) {
  char text[66], out[SHELL_ROOM(65)], command[400], answer[100];
  for (int first = 1; first < 256; first += 5) {
    size_t len = 0;
    for (int c = first; c < 256 && len < 65; c++)
      text[len++] = (char)c;
    text[len] = '\0';
    snprintf(command, sizeof command, "printf %%s. %s", shell_word(out, sizeof out, text));
    FILE *shell = popen(command, "r"); /* NOLINT(cert-env33-c): that is what is tested */
    assert_non_null(shell);
    size_t got = fread(answer, 1, sizeof answer - 1, shell);
    assert_int_equal(pclose(shell), 0);
    assert_int_equal(got, len + 1);
    assert_memory_equal(answer, text, len);
  }
}

static void what_does_not_fit_is_no_half_command(void **state) {
  char out[12];
  assert_string_equal(shell_word(out, sizeof out, "0123456789a"), "0123456789a");
  assert_string_equal(shell_word(out, sizeof out, "0123456789ab"), "'?'");
  assert_string_equal(shell_word(out, sizeof out, "a b c d e"), "'a b c d e'");
  assert_string_equal(shell_word(out, sizeof out, "a b c d e "), "'?'");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(quotes_are_written_where_they_are_needed),
      cmocka_unit_test(the_shell_reads_what_was_written),
      cmocka_unit_test(what_does_not_fit_is_no_half_command),
  };
  return cmocka_run_group_tests_name("shell", tests, NULL, NULL);
}
