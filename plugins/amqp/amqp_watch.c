/* SPDX-License-Identifier: MIT */
#include "amqp_watch.h"

#include <fcntl.h>
#include <linux/tcp.h> /* tcpi_bytes_received, which <netinet/tcp.h> does not have */
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "amqp_conn.h"

enum { STEP_US = 50000 }; /* a flood over loopback brings some 4 MB meanwhile */

struct amqp_watch {
  pthread_t thread;
  pthread_mutex_t lock; /* of what follows */
  pthread_cond_t changed;
  bool stopping;
  int fd; /* -1: nothing to watch */
  int64_t end_us;
  uint64_t last_byte;
  const char *why;
};

static uint64_t bytes_received(int fd) {
  struct tcp_info info = {0};
  socklen_t len = sizeof info;
  return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0 ? info.tcpi_bytes_received : 0;
}

/* The lock is held. */
static void let_go(struct amqp_watch *watch) {
  if (watch->fd >= 0)
    close(watch->fd);
  watch->fd = -1;
}

static void look(struct amqp_watch *watch, int64_t now_us) {
  if (bytes_received(watch->fd) > watch->last_byte)
    watch->why = "it sent far more than was asked for";
  else if (now_us >= watch->end_us)
    watch->why = "the time for it is over";
  else
    return;
  (void)shutdown(watch->fd, SHUT_RDWR);
  let_go(watch);
}

static void *run(void *arg) {
  struct amqp_watch *watch = arg;
  pthread_mutex_lock(&watch->lock);
  while (!watch->stopping) {
    int64_t now_us = amqp_now_us();
    if (watch->fd >= 0)
      look(watch, now_us);
    int64_t next_us = now_us + STEP_US;
    if (next_us > watch->end_us)
      next_us = watch->end_us;
    struct timespec next = {.tv_sec = next_us / 1000000, .tv_nsec = next_us % 1000000 * 1000};
    if (watch->fd >= 0)
      (void)pthread_cond_timedwait(&watch->changed, &watch->lock, &next);
    else
      (void)pthread_cond_wait(&watch->changed, &watch->lock);
  }
  pthread_mutex_unlock(&watch->lock);
  return NULL;
}

static void free_watch(struct amqp_watch *watch) {
  pthread_cond_destroy(&watch->changed);
  pthread_mutex_destroy(&watch->lock);
  free(watch);
}

struct amqp_watch *amqp_watch_start(void) {
  struct amqp_watch *watch = calloc(1, sizeof *watch);
  if (!watch)
    return NULL;
  watch->fd = -1;
  pthread_condattr_t monotonic;
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_mutex_init(&watch->lock, NULL);
  pthread_cond_init(&watch->changed, &monotonic);
  pthread_condattr_destroy(&monotonic);
  /* Signals are the host's: none may land on this thread. */
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int failed = pthread_create(&watch->thread, NULL, run, watch);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (failed) {
    free_watch(watch);
    return NULL;
  }
  return watch;
}

void amqp_watch_limit(struct amqp_watch *watch, int fd, int64_t end_us, uint64_t bytes) {
  pthread_mutex_lock(&watch->lock);
  let_go(watch);
  watch->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  watch->end_us = end_us;
  watch->last_byte = bytes_received(fd) + bytes;
  if (watch->fd < 0) { /* what cannot be watched does not go on */
    (void)shutdown(fd, SHUT_RDWR);
    watch->why = "no descriptor is left to watch it; is the limit of open files reached?";
  }
  pthread_cond_signal(&watch->changed);
  pthread_mutex_unlock(&watch->lock);
}

const char *amqp_watch_stop(struct amqp_watch *watch) {
  if (!watch)
    return NULL;
  pthread_mutex_lock(&watch->lock);
  watch->stopping = true;
  pthread_cond_signal(&watch->changed);
  pthread_mutex_unlock(&watch->lock);
  pthread_join(watch->thread, NULL);
  let_go(watch);
  const char *why = watch->why;
  free_watch(watch);
  return why;
}
