/* SPDX-License-Identifier: MIT */
#include "core/watcher.h"

#include <string.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/sync.h"

enum {
  RETRY_MIN_US = 100 * 1000,
  RETRY_MAX_US = 5 * 1000 * 1000,
  STEADY_US = 60 * 1000 * 1000,  /* who followed for so long may try again at once */
  REFUSED_US = 60 * 1000 * 1000, /* somebody has to grant or configure something */
};

/* True: stop. */
static bool sleep_us(struct watcher *watcher, int64_t us) {
  int64_t deadline = clock_mono_us() + us;
  mutex_lock(&watcher->lock);
  while (!watcher->stopping && clock_mono_us() < deadline)
    (void)cond_wait_until(&watcher->woken, &watcher->lock, deadline);
  bool stop = watcher->stopping;
  mutex_unlock(&watcher->lock);
  return stop;
}

/* What was missed while there was no watch is found by one look. */
static void look_once(struct watcher *watcher) {
  scheduler_hint(watcher->scheduler, &(struct store_hint){.due_us = INT64_MIN}, 1);
}

/* The same reason is said once. */
static void say_why(struct watcher *watcher, enum store_status status, const struct err *err) {
  if (watcher->said && strcmp(watcher->why.text, err->text) == 0)
    return;
  watcher->said = true;
  watcher->why = *err;
  if (status != STORE_REFUSED)
    log_warn("DUEBOX-BINLOG-LOST", "tasks are found by polling until the binlog can be followed again: %s", err->text);
  else if (watcher->wanted)
    log_error("DUEBOX-BINLOG-OFF", "database.wake is binlog, and yet tasks are found by polling alone: %s", err->text);
  else
    log_info("DUEBOX-BINLOG-OFF", "tasks are found by polling alone: %s", err->text);
}

/* Lets watcher_stop() end the wait, or says that it is too late for that. */
static bool offer(struct watcher *watcher, struct store_watch *watch) {
  mutex_lock(&watcher->lock);
  watcher->watch = watch;
  bool stop = watcher->stopping;
  mutex_unlock(&watcher->lock);
  return !stop;
}

/* Passes on what the watch tells until it ends, or this thread is to. A server tells of itself though nothing happens,
 * so even one whose wait cannot be ended keeps nobody waiting. */
static enum store_status follow(struct watcher *watcher, struct store_watch *watch, struct err *err) {
  const struct store_ops *ops = watcher->store->ops;
  const struct store_hint *hints = NULL;
  size_t n = 0;
  enum store_status status = STORE_OK;
  set_gauge(&watcher->metrics->watch_up, 1);
  look_once(watcher);
  while (offer(watcher, watch) && (status = ops->watch_next(watch, &hints, &n, err)) == STORE_OK) {
    count(&watcher->metrics->hints, n);
    scheduler_hint(watcher->scheduler, hints, n);
  }
  (void)offer(watcher, NULL);
  set_gauge(&watcher->metrics->watch_up, 0);
  return status;
}

static void run(void *arg) {
  struct watcher *watcher = arg;
  const struct store_ops *ops = watcher->store->ops;
  int64_t wait_us = RETRY_MIN_US;
  bool altered = false;
  do {
    struct store_watch *watch = NULL;
    struct err err = {0};
    enum store_status status = ops->watch(watcher->store->self, watcher->host, watcher->max_payload, &watch, &err);
    if (status == STORE_OK) {
      if (!altered)
        log_info("DUEBOX-BINLOG-ON", "tasks are noticed as they commit: the server's binlog is followed");
      watcher->said = false;
      int64_t begun_us = clock_mono_us();
      status = follow(watcher, watch, &err);
      if (clock_mono_us() - begun_us > STEADY_US)
        wait_us = RETRY_MIN_US;
    }
    ops->watch_close(&watch);
    altered = status == STORE_BUSY;
    if (altered || sleep_us(watcher, 0))
      continue;
    say_why(watcher, status, &err);
    if (status == STORE_REFUSED) {
      (void)sleep_us(watcher, REFUSED_US);
      continue;
    }
    (void)sleep_us(watcher, wait_us);
    wait_us = wait_us * 2 < RETRY_MAX_US ? wait_us * 2 : RETRY_MAX_US;
  } while (!sleep_us(watcher, 0));
}

bool watcher_start(struct watcher *watcher, struct err *err) {
  mutex_init(&watcher->lock);
  cond_init(&watcher->woken);
  if (thread_start(&watcher->thread, "binlog", run, watcher))
    return true;
  return err_set(err, 0, "no thread for following the binlog: the process limit is reached");
}

void watcher_stop(struct watcher *watcher) {
  mutex_lock(&watcher->lock);
  watcher->stopping = true;
  if (watcher->watch)
    watcher->store->ops->watch_end(watcher->watch);
  cond_broadcast(&watcher->woken);
  mutex_unlock(&watcher->lock);
  thread_join(&watcher->thread);
  cond_destroy(&watcher->woken);
  mutex_destroy(&watcher->lock);
}
