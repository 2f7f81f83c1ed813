/* SPDX-License-Identifier: MIT
 *
 * tests/unit/test_log.c - what strangers write into a task cannot control a terminal, reorder or break a log line,
 * and nobody waits for who reads the log.
 */
#include <errno.h>
#include <fcntl.h>
#include <pty.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <termios.h>
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

/* All that is there, as a text. */
static char *drain(int fd, char *text, size_t cap) {
  size_t used = 0;
  for (ssize_t n = 1; n > 0; used += n > 0 ? (size_t)n : 0) {
    assert_true(used + 1 < cap);
    n = recv(fd, text + used, cap - used - 1, MSG_DONTWAIT);
    if (n < 0 && errno == ENOTSOCK) {
      assert_return_code(fcntl(fd, F_SETFL, O_NONBLOCK), errno);
      n = read(fd, text + used, cap - used - 1);
    }
  }
  text[used] = 0;
  return text;
}

/* A settler that waited here would settle nobody's tasks: what cannot be written is dropped, and its number is told. */
static void nobody_waits_for_who_reads(int reader, int writer) {
  static char text[1 << 21], before[64], after[64];
  log_setup(LOG_LEVEL_INFO, LOG_FORMAT_JSON, writer);
  enum { LINES = 4000 };
  for (int i = 0; i < LINES; i++) /* more than fits; under a plain write(2) this has no end */
    log_info("DUEBOX-TEST", "line=%d %s", i, "0123456789012345678901234567890123456789012345678901234567890123456789");
  int kept = 0;
  drain(reader, text, sizeof text);
  for (const char *at = text; (at = strstr(at, "line=")); at++)
    kept++;
  assert_true(kept > 0 && kept < LINES);
  log_info("DUEBOX-TEST", "back");
  drain(reader, text, sizeof text);
  snprintf(before, sizeof before, "\"msg\":\"lines=%d were dropped", LINES - kept);
  snprintf(after, sizeof after, "\"msg\":\"back\"}\n");
  if (!strstr(text, before) || !strstr(text, after))
    fail_msg("of %d lines %d were kept; then: %s", LINES, kept, text);
  log_info("DUEBOX-TEST", "once");
  assert_null(strstr(drain(reader, text, sizeof text), "dropped"));
  log_setup(LOG_LEVEL_INFO, LOG_FORMAT_JSON, STDERR_FILENO);
}

static void a_full_pipe_stops_nobody(void **state) {
  int ends[2];
  assert_int_equal(pipe(ends), 0);
  nobody_waits_for_who_reads(ends[0], ends[1]);
  assert_int_equal(fcntl(ends[1], F_GETFL) & O_NONBLOCK, 0); /* others have it, too */
  close(ends[0]);
  close(ends[1]);
}

static void a_full_socket_stops_nobody(void **state) {
  int ends[2];
  assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  nobody_waits_for_who_reads(ends[0], ends[1]);
  close(ends[0]);
  close(ends[1]);
}

static void a_full_terminal_stops_nobody(void **state) {
  int master, slave;
  struct termios raw;
  assert_int_equal(openpty(&master, &slave, NULL, NULL, NULL), 0);
  assert_int_equal(tcgetattr(slave, &raw), 0);
  cfmakeraw(&raw);
  assert_int_equal(tcsetattr(slave, TCSANOW, &raw), 0);
  nobody_waits_for_who_reads(master, slave);
  close(master);
  close(slave);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(hostile_characters_are_escaped),
      cmocka_unit_test(a_full_pipe_stops_nobody),
      cmocka_unit_test(a_full_socket_stops_nobody),
      cmocka_unit_test(a_full_terminal_stops_nobody),
  };
  return cmocka_run_group_tests_name("log", tests, NULL, NULL);
}
