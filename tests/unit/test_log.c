/* SPDX-License-Identifier: MIT
 *
 * tests/unit/test_log.c - what strangers write into a task cannot control a terminal, reorder or break a log line.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/base/log.h"
#include "core/base/utf8.h"

static void hostile_characters_are_escaped(void **state) {
  static const struct {
    const char *text, *line;
  } rows[] = {
      {"plain \xe6\x97\xa5\xe6\x9c\xac", "plain \xe6\x97\xa5\xe6\x9c\xac"},
      {"\x1b[2J", "\\u001b[2J"},
      {"\xc2\x9b"
       "2J",
       "\\u009b2J"},
      {"a\xe2\x80\xae"
       "b",
       "a\\u202eb"},
      {"\xe2\x81\xa6\xe2\x81\xa9\xe2\x80\x8b\xef\xbb\xbf", "\\u2066\\u2069\\u200b\\ufeff"},
      {"\xff\xc3", "\\ufffd\\ufffd"},
      {"a\nb\"c\\", "a\\nb\\\"c\\\\"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    int ends[2];
    char line[1024] = "", want[256];
    assert_int_equal(pipe(ends), 0);
    log_setup(LOG_LEVEL_INFO, LOG_FORMAT_JSON, ends[1]);
    log_info("DUEBOX-TEST", "%s", rows[i].text);
    ssize_t n = read(ends[0], line, sizeof line - 1);
    assert_true(n > 0);
    snprintf(want, sizeof want, "\"msg\":\"%s\"}\n", rows[i].line);
    if (!strstr(line, want))
      fail_msg("row %zu: %s", i, line);
    close(ends[0]);
    close(ends[1]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(hostile_characters_are_escaped)};
  return cmocka_run_group_tests_name("log", tests, NULL, NULL);
}
