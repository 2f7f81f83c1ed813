/* SPDX-License-Identifier: MIT */
#include "core/base/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/utf8.h"

/* The one process-wide state of the program: where log lines go. Written by log_setup() before threads start. */
static struct {
  _Atomic int level;
  _Atomic int format;
  int fd;
  bool syslog_prefix;
} out = {.level = LOG_LEVEL_INFO, .format = LOG_FORMAT_LOGFMT, .fd = STDERR_FILENO};

enum { LINE_MAX_BYTES = 8192 };

static const char *const level_names[] = {"error", "warn", "info", "debug"};
static const int syslog_levels[] = {3, 4, 6, 7};

void log_setup(enum log_level level, enum log_format format, int fd) {
  atomic_store(&out.level, (int)level);
  out.fd = fd;
  out.syslog_prefix = getenv("JOURNAL_STREAM") != NULL;
  log_set_format(format);
}

void log_set_format(enum log_format format) {
  atomic_store(&out.format, (int)(format == LOG_FORMAT_AUTO ? LOG_FORMAT_LOGFMT : format));
}

void log_set_level(enum log_level level) { atomic_store(&out.level, (int)level); }

static size_t append(char *line, size_t used, const char *text) {
  size_t room = LINE_MAX_BYTES - used - 1;
  size_t len = strlen(text);
  if (len > room)
    len = room;
  memcpy(line + used, text, len); /* NOLINT(bugprone-not-null-terminated-result): the line ends with a line feed */
  return used + len;
}

/* Copies text as the inside of a quoted string. Both formats escape alike: JSON's rules are a subset of logfmt's. Bytes
 * that are not UTF-8 become U+FFFD, as JSON has no others. */
static size_t append_escaped(char *line, size_t used, const char *text) {
  size_t len = strlen(text), size;
  for (size_t i = 0; i < len && used + 12 < LINE_MAX_BYTES; i += size) {
    unsigned code = 0xfffd;
    size = utf8_decode(text + i, len - i, &code);
    if (size == 0 || (utf8_is_unsafe(code) && code != '\n')) {
      used += (size_t)snprintf(line + used, 8, "\\u%04x", code);
    } else if (code == '"' || code == '\\' || code == '\n') {
      line[used++] = '\\';
      line[used++] = code == '\n' ? 'n' : (char)code;
    } else {
      memcpy(line + used, text + i, size);
      used += size;
    }
    size = size ? size : 1;
  }
  return used;
}

static void stamp(char *text, size_t cap) {
  int64_t now = clock_wall_us();
  time_t seconds = (time_t)(now / 1000000);
  struct tm tm;
  gmtime_r(&seconds, &tm);
  char date[32];
  strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &tm);
  snprintf(text, cap, "%s.%06dZ", date, (int)(now % 1000000));
}

void log_write(enum log_level level, const char *id, const char *fmt, ...) {
  if ((int)level > atomic_load(&out.level))
    return;
  char text[4096];
  va_list args;
  va_start(args, fmt);
  vsnprintf(text, sizeof text, fmt, args);
  va_end(args);

  char time_text[64], prefix[8] = "";
  stamp(time_text, sizeof time_text);
  if (out.syslog_prefix)
    snprintf(prefix, sizeof prefix, "<%d>", syslog_levels[level]);

  bool json = out.format == LOG_FORMAT_JSON;
  char line[LINE_MAX_BYTES];
  size_t used = append(line, 0, prefix);
  used = append(line, used, json ? "{\"time\":\"" : "time=");
  used = append(line, used, time_text);
  used = append(line, used, json ? "\",\"level\":\"" : " level=");
  used = append(line, used, level_names[level]);
  used = append(line, used, json ? "\",\"id\":\"" : " id=");
  used = append(line, used, id);
  used = append(line, used, json ? "\",\"msg\":\"" : " msg=\"");
  used = append_escaped(line, used, text);
  used = append(line, used, json ? "\"}" : "\"");
  line[used++] = '\n';
  /* A full or closed pipe must not stop work: the line is dropped. */
  ssize_t ignored = write(out.fd, line, used);
  (void)ignored;
}
