/* SPDX-License-Identifier: MIT */
#include "core/base/log.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/utf8.h"

enum way { WAY_FILE, WAY_OWN, WAY_SHARED, WAY_SOCKET };

/* The one process-wide state of the program: where log lines go. Written by log_setup() before threads start, but for
 * what the lock guards. */
static struct {
  _Atomic int level;
  _Atomic int format;
  int fd;
  enum way way;
  bool syslog_prefix;
  pthread_mutex_t lock;
  unsigned long lost; /* lines since the last that went out */
  bool torn;          /* the last one went out in part */
} out = {.level = LOG_LEVEL_INFO, .format = LOG_FORMAT_LOGFMT, .fd = STDERR_FILENO, .lock = PTHREAD_MUTEX_INITIALIZER};

/* A pipe takes so much whole or not at all (pipe(7)), and where poll() says that it takes something, it takes it all.
 */
enum { LINE_MAX_BYTES = PIPE_BUF, PATIENCE_MS = 20 };

static const char *const level_names[] = {"error", "warn", "info", "debug"};
static const int syslog_levels[] = {3, 4, 6, 7};

/* How to write without waiting for who reads. O_NONBLOCK would change a pipe or terminal for everybody who has it, so
 * we open it once more for ourselves; one that belongs to somebody else cannot be opened (docker, su). */
static enum way find_way(int fd, int *own) {
  struct stat is;
  char path[32];
  *own = fd;
  if (fstat(fd, &is) == 0 && S_ISSOCK(is.st_mode))
    return WAY_SOCKET;
  if (!S_ISFIFO(is.st_mode) && !isatty(fd))
    return WAY_FILE;
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  int opened = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (opened < 0)
    return WAY_SHARED;
  *own = opened;
  return WAY_OWN;
}

void log_setup(enum log_level level, enum log_format format, int fd) {
  if (out.way == WAY_OWN)
    close(out.fd);
  atomic_store(&out.level, (int)level);
  out.way = find_way(fd, &out.fd);
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

static size_t compose(char *line, enum log_level level, const char *id, const char *text) {
  char time_text[64], prefix[8] = "";
  stamp(time_text, sizeof time_text);
  if (out.syslog_prefix)
    snprintf(prefix, sizeof prefix, "<%d>", syslog_levels[level]);

  bool json = out.format == LOG_FORMAT_JSON;
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
  return used;
}

/* Whether the line is out, and the next one may follow. Who reads gets a moment, once: a burst is no standstill. */
static bool put(const char *line, size_t len) {
  struct pollfd ready = {.fd = out.fd, .events = POLLOUT};
  for (int tries = 0; len && tries < 2; tries++) {
    if (out.way != WAY_FILE && poll(&ready, 1, out.lost ? 0 : PATIENCE_MS) != 1)
      return false;
    ssize_t done =
        out.way == WAY_SOCKET ? send(out.fd, line, len, MSG_DONTWAIT | MSG_NOSIGNAL) : write(out.fd, line, len);
    if (done <= 0)
      return false;
    line += done;
    len -= (size_t)done;
    out.torn = len > 0;
  }
  return len == 0;
}

/* Under the lock. What cannot be written at once is dropped and counted: work does not wait for who reads the log. */
static void deliver(const char *line, size_t len) {
  char missed[LINE_MAX_BYTES], text[64];
  bool open = !out.torn || put("\n", 1);
  if (open && out.lost) {
    snprintf(text, sizeof text, "lines=%lu were dropped: the log took no more", out.lost);
    open = put(missed, compose(missed, LOG_LEVEL_WARN, "DUEBOX-LOG-DROPPED", text));
    out.lost = open ? 0 : out.lost;
  }
  if (!open || !put(line, len))
    out.lost++;
}

void log_write(enum log_level level, const char *id, const char *fmt, ...) {
  if ((int)level > atomic_load(&out.level))
    return;
  char text[LINE_MAX_BYTES], line[LINE_MAX_BYTES];
  va_list args;
  va_start(args, fmt);
  vsnprintf(text, sizeof text, fmt, args);
  va_end(args);
  size_t len = compose(line, level, id, text);
  pthread_mutex_lock(&out.lock);
  deliver(line, len);
  pthread_mutex_unlock(&out.lock);
}
