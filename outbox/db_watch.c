/* SPDX-License-Identifier: MIT */
#include "outbox/db_watch.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/clock.h"

/* What db_watch_socket() is called from is called by the client library with nothing but a descriptor. */
static _Thread_local struct db_watch *current;

static void run(void *arg) {
  struct db_watch *watch = arg;
  mutex_lock(&watch->lock);
  while (!watch->over && (watch->deadline_us == 0 || clock_mono_us() < watch->deadline_us)) {
    if (watch->deadline_us)
      (void)cond_wait_until(&watch->changed, &watch->lock, watch->deadline_us);
    else
      cond_wait(&watch->changed, &watch->lock);
  }
  if (!watch->over) {
    (void)shutdown(watch->socket, SHUT_RDWR); /* fails where the library's call has failed, or is about to */
    watch->cut = true;
  }
  mutex_unlock(&watch->lock);
}

void db_watch_begin(struct db_watch *watch, int64_t limit_ms) {
  *watch = (struct db_watch){.limit_us = limit_ms * 1000, .socket = -1};
  mutex_init(&watch->lock);
  cond_init(&watch->changed);
  /* Where no thread is to be had, a login with the library's limits alone is better than none. */
  watch->started = thread_start(&watch->thread, "db-watch", run, watch);
  current = watch;
}

static void set_deadline(struct db_watch *watch) {
  watch->deadline_us = clock_mono_us() + watch->limit_us;
  cond_signal(&watch->changed);
}

void db_watch_socket(int fd) {
  struct db_watch *watch = current;
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

void db_watch_again(struct db_watch *watch, int64_t limit_ms) {
  mutex_lock(&watch->lock);
  watch->limit_us = limit_ms * 1000;
  if (watch->socket >= 0)
    set_deadline(watch);
  mutex_unlock(&watch->lock);
}

bool db_watch_end(struct db_watch *watch) {
  current = NULL;
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
  return watch->cut;
}
