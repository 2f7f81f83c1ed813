/* SPDX-License-Identifier: MIT */
#include "outbox/db_watch.h"

#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/clock.h"

/* What db_watch_socket() is called from is called by the client library with nothing but a descriptor. */
static _Thread_local struct db_watch *logging_in;

bool db_watch_goes_on(struct db_watch_flow *flow, int64_t limit_us, bool known, uint64_t bytes) {
  uint64_t came = bytes - flow->bytes, least = (uint64_t)(limit_us / 1000) * DB_WATCH_SLOWEST;
  bool slow = flow->times > 0 && known && came < least;
  flow->bytes = bytes;
  return ++flow->times < DB_WATCH_TIMES && !slow;
}

/* Asked of the system only when a limit has passed, so that it costs a statement nothing. */
static bool received(int fd, uint64_t *bytes) {
  struct tcp_info info = {0};
  socklen_t len = sizeof info;
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) != 0 ||
      len < offsetof(struct tcp_info, tcpi_bytes_received) + sizeof info.tcpi_bytes_received)
    return false;
  *bytes = info.tcpi_bytes_received;
  return true;
}

static void set_deadline(struct db_watch *watch) {
  watch->deadline_us = clock_mono_us() + watch->limit_us;
  if (watch->deadline_us < watch->wakes_us)
    cond_signal(&watch->changed);
}

static void look(struct db_watch *watch) {
  uint64_t bytes = 0;
  bool known = watch->rows && received(watch->socket, &bytes);
  if (watch->rows && db_watch_goes_on(&watch->flow, watch->limit_us, known, bytes)) {
    set_deadline(watch);
    return;
  }
  (void)shutdown(watch->socket, SHUT_RDWR); /* fails where the library's call has failed, or is about to */
  watch->cut = true;
  watch->deadline_us = 0;
}

static void run(void *arg) {
  struct db_watch *watch = arg;
  mutex_lock(&watch->lock);
  while (!watch->over) {
    if (watch->deadline_us && clock_mono_us() >= watch->deadline_us)
      look(watch);
    watch->wakes_us = watch->deadline_us ? watch->deadline_us : INT64_MAX;
    if (watch->deadline_us)
      (void)cond_wait_until(&watch->changed, &watch->lock, watch->deadline_us);
    else
      cond_wait(&watch->changed, &watch->lock);
  }
  mutex_unlock(&watch->lock);
}

void db_watch_create(struct db_watch *watch) {
  *watch = (struct db_watch){.socket = -1, .wakes_us = INT64_MAX};
  mutex_init(&watch->lock);
  cond_init(&watch->changed);
  /* Where no thread is to be had, a connection with the library's limits alone is better than none. */
  watch->started = thread_start(&watch->thread, "db-watch", run, watch);
}

void db_watch_destroy(struct db_watch *watch) {
  mutex_lock(&watch->lock);
  watch->over = true;
  cond_signal(&watch->changed);
  mutex_unlock(&watch->lock);
  if (watch->started)
    thread_join(&watch->thread);
  cond_destroy(&watch->changed);
  mutex_destroy(&watch->lock);
  if (watch->socket >= 0)
    close(watch->socket);
}

void db_watch_login(struct db_watch *watch, int64_t limit_ms) {
  mutex_lock(&watch->lock);
  watch->limit_us = limit_ms * 1000;
  mutex_unlock(&watch->lock);
  logging_in = watch;
}

void db_watch_socket(int fd) {
  struct db_watch *watch = logging_in;
  struct stat now;
  if (!watch || fstat(fd, &now) != 0 || (watch->socket >= 0 && watch->inode == now.st_ino))
    return;
  mutex_lock(&watch->lock);
  if (watch->socket >= 0)
    close(watch->socket);
  watch->socket = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  watch->inode = now.st_ino;
  if (watch->socket >= 0)
    set_deadline(watch);
  mutex_unlock(&watch->lock);
}

bool db_watch_has_socket(const struct db_watch *watch) { return watch->socket >= 0; }

void db_watch_login_again(struct db_watch *watch, int64_t limit_ms) { db_watch_limit(watch, limit_ms, false); }

bool db_watch_login_end(struct db_watch *watch) {
  logging_in = NULL;
  return db_watch_done(watch);
}

void db_watch_limit(struct db_watch *watch, int64_t limit_ms, bool rows) {
  mutex_lock(&watch->lock);
  watch->limit_us = limit_ms * 1000;
  watch->rows = rows;
  watch->flow = (struct db_watch_flow){0};
  if (watch->socket >= 0)
    set_deadline(watch);
  mutex_unlock(&watch->lock);
}

bool db_watch_done(struct db_watch *watch) {
  mutex_lock(&watch->lock);
  bool cut = watch->cut;
  watch->deadline_us = 0;
  watch->cut = false;
  mutex_unlock(&watch->lock);
  return cut;
}

void db_watch_interrupt(struct db_watch *watch) {
  mutex_lock(&watch->lock);
  (void)shutdown(watch->socket, SHUT_RDWR);
  mutex_unlock(&watch->lock);
}
