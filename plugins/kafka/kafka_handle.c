/* SPDX-License-Identifier: MIT
 *
 * plugins/kafka/kafka_handle.c - see kafka_handle.h. Driver thread, except kafka_wake_signal() and the thread that
 * kafka_handle_end() starts; no locks.
 */
#include "kafka_handle.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

bool kafka_wake_open(struct kafka_wake *wake, struct duebox_error *err) {
  wake->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (wake->fd >= 0)
    return true;
  return kafka_fail(err, "eventfd: %s; raise the limit of open files (LimitNOFILE)", strerror(errno));
}

void kafka_wake_close(struct kafka_wake *wake) {
  if (wake->fd >= 0)
    close(wake->fd);
  wake->fd = -1;
}

void kafka_wake_signal(const struct kafka_wake *wake) {
  const uint64_t one = 1;
  ssize_t n = write(wake->fd, &one, sizeof(one));
  (void)n; /* EAGAIN: the counter is full, so the signal is there already */
}

bool kafka_wake_wait(const struct kafka_wake *wake, int timeout_ms) {
  struct pollfd pfd = {.fd = wake->fd, .events = POLLIN};
  uint64_t count;
  return poll(&pfd, 1, timeout_ms) == 1 && read(wake->fd, &count, sizeof(count)) == sizeof(count);
}

bool kafka_handle_open(struct kafka_handle *handle, rd_kafka_type_t type, const rd_kafka_conf_t *conf,
                       const struct kafka_wake *wake, struct duebox_error *err) {
  static const uint64_t one = 1;
  char text[400];
  rd_kafka_conf_t *copy = rd_kafka_conf_dup(conf);
  handle->strayed = calloc(1, sizeof(*handle->strayed));
  rd_kafka_conf_set_opaque(copy, handle->strayed);
  handle->rk = handle->strayed ? rd_kafka_new(type, copy, text, sizeof(text)) : NULL;
  if (!handle->strayed)
    strcpy(text, "out of memory");
  if (!handle->rk) {
    free(handle->strayed);
    handle->strayed = NULL;
    rd_kafka_conf_destroy(copy); /* rd_kafka_new() takes it only when it succeeds */
    return kafka_fail(err, "librdkafka cannot start: %s", text);
  }
  if (type == RD_KAFKA_CONSUMER) {
    rd_kafka_poll_set_consumer(handle->rk);
    handle->queue = rd_kafka_queue_get_consumer(handle->rk);
  } else {
    handle->queue = rd_kafka_queue_get_main(handle->rk);
  }
  rd_kafka_set_log_queue(handle->rk, handle->queue);
  rd_kafka_queue_io_event_enable(handle->queue, wake->fd, &one, sizeof(one));
  kafka_wake_signal(wake); /* what came before the line above */
  return true;
}

struct ending {
  rd_kafka_t *rk;
  atomic_bool *strayed;
  struct kafka_wake done; /* tells the one who waits; -1 = nobody does */
};

static void *end_client(void *arg) {
  struct ending ending = *(struct ending *)arg;
  free(arg);
  rd_kafka_destroy_flags(ending.rk, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
  free(ending.strayed);
  if (ending.done.fd >= 0)
    kafka_wake_signal(&ending.done);
  kafka_wake_close(&ending.done);
  return NULL;
}

/* Starts the thread. Without memory or threads the caller's own does the work: late is better than never. */
static bool start_ending(rd_kafka_t *rk, atomic_bool *strayed, const struct kafka_wake *done) {
  pthread_t thread;
  struct ending *ending = malloc(sizeof(*ending));
  if (ending) {
    *ending = (struct ending){rk, strayed, {fcntl(done->fd, F_DUPFD_CLOEXEC, 0)}};
    if (pthread_create(&thread, NULL, end_client, ending) == 0)
      return pthread_detach(thread) == 0;
    kafka_wake_close(&ending->done);
    free(ending);
  }
  rd_kafka_destroy_flags(rk, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
  free(strayed);
  return false;
}

bool kafka_handle_end(struct kafka_handle *handle, int timeout_ms) {
  rd_kafka_t *rk = handle->rk;
  atomic_bool *strayed = handle->strayed;
  struct kafka_wake done = {-1};
  bool ended = true;
  if (!rk)
    return true;
  rd_kafka_queue_io_event_enable(handle->queue, -1, NULL, 0);
  rd_kafka_queue_destroy(handle->queue);
  *handle = (struct kafka_handle){NULL, NULL, NULL};
  bool waitable = timeout_ms > 0 && kafka_wake_open(&done, NULL);
  if (start_ending(rk, strayed, &done))
    ended = waitable && kafka_wake_wait(&done, timeout_ms);
  kafka_wake_close(&done);
  return ended;
}

bool kafka_handle_strayed(struct kafka_handle *handle) {
  return handle->strayed && atomic_exchange(handle->strayed, false);
}

void kafka_log_event(const struct duebox_host *host, rd_kafka_event_t *event) {
  const char *facility, *text;
  int syslog_level;
  if (rd_kafka_event_log(event, &facility, &text, &syslog_level) != 0)
    return;
  /* A broker that cannot be reached is an error to librdkafka; to us it is an outcome and a health report. */
  enum duebox_log_level level = syslog_level <= 4   ? DUEBOX_LOG_WARN
                                : syslog_level <= 6 ? DUEBOX_LOG_INFO
                                                    : DUEBOX_LOG_DEBUG;
  host->log(host->ctx, level, "KAFKA-CLIENT", "%s: %s", facility, text);
}

bool kafka_stats_connected(rd_kafka_event_t *event) {
  const char *json = rd_kafka_event_stats(event);
  return json && strstr(json, "\"state\":\"UP\""); /* STATISTICS.md: brokers.*.state; nothing else is called UP */
}
