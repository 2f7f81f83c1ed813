/* SPDX-License-Identifier: MIT
 *
 * tests/unit/test_log.c - what strangers write into a task cannot control a terminal, reorder or break a log line,
 * and nobody waits for who reads the log.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
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

/* What has come so far, as a text. */
struct heard {
  char text[1 << 21];
  size_t used;
};

/* Adds what is there. A terminal may hold more back for a moment. */
static void hear(struct heard *heard, int fd) {
  for (ssize_t n = 1; n > 0; heard->used += n > 0 ? (size_t)n : 0) {
    size_t room = sizeof heard->text - heard->used - 1;
    assert_true(room > 0);
    n = recv(fd, heard->text + heard->used, room, MSG_DONTWAIT);
    if (n < 0 && errno == ENOTSOCK) {
      assert_return_code(fcntl(fd, F_SETFL, O_NONBLOCK), errno);
      n = read(fd, heard->text + heard->used, room);
    }
  }
  heard->text[heard->used] = '\0';
}

static int lines_of(const struct heard *heard) {
  int lines = 0;
  for (const char *at = heard->text; (at = strstr(at, "\"DUEBOX-TEST\"")); at++)
    lines++;
  return lines;
}

/* How many lines it says were dropped. */
static int dropped_of(const struct heard *heard) {
  static const char says[] = "\"DUEBOX-LOG-DROPPED\",\"msg\":\"lines=";
  int dropped = 0;
  for (const char *at = heard->text; (at = strstr(at, says)); at++)
    dropped += atoi(at + sizeof says - 1);
  return dropped;
}

/* Logs the line until it comes out; returns how often. */
static int log_until_heard(struct heard *heard, int reader, const char *line) {
  enum { LIMIT_MS = 60 * 1000 };
  char end[64];
  snprintf(end, sizeof end, "\"msg\":\"%s\"}\n", line);
  for (int times = 1; times <= LIMIT_MS; times++) {
    log_info("DUEBOX-TEST", "%s", line);
    hear(heard, reader);
    if (strstr(heard->text, end))
      return times;
    (void)poll(&(struct pollfd){.fd = reader, .events = POLLIN}, 1, 1);
  }
  fail_msg("\"%s\" did not come out; of what did the end is: %s", line,
           heard->text + (heard->used > 500 ? heard->used - 500 : 0));
  return 0;
}

/* A settler that waited here would settle nobody's tasks: what cannot be written is dropped, and its number is told. */
static void nobody_waits_for_who_reads(int reader, int writer) {
  static struct heard heard;
  heard.used = 0;
  log_setup(LOG_LEVEL_INFO, LOG_FORMAT_JSON, writer);
  enum { LINES = 4000 };
  for (int i = 0; i < LINES; i++) /* more than fits; under a plain write(2) this has no end */
    log_info("DUEBOX-TEST", "line=%d %s", i, "0123456789012345678901234567890123456789012345678901234567890123456789");
  int logged = LINES + log_until_heard(&heard, reader, "back");
  int dropped = dropped_of(&heard);
  assert_in_range(dropped, 1, logged - 1);
  logged += log_until_heard(&heard, reader, "once");
  assert_int_equal(lines_of(&heard) + dropped_of(&heard), logged);
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
