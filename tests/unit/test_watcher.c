/* SPDX-License-Identifier: MIT
 *
 * The thread that follows the binlog ends when it is to, whatever the store does about it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/clock.h"
#include "core/watcher.h"

enum { LIMIT_US = 30 * 1000 * 1000 };

static atomic_int told, closed;

static enum store_status open_watch(void *store, const char *host, int64_t max_payload, struct store_watch **out,
                                    struct err *err) {
  *out = (struct store_watch *)(void *)&told;
  return STORE_OK;
}

/* A server that has nothing to tell says so again and again. */
static enum store_status next_heartbeat(struct store_watch *watch, const struct store_hint **hints, size_t *count,
                                        struct err *err) {
  thread_sleep(1000);
  *count = 0;
  atomic_fetch_add(&told, 1);
  return STORE_OK;
}

/* As where no descriptor was left by which its wait could be ended. */
static void end_nothing(struct store_watch *watch) { (void)watch; }

static void close_watch(struct store_watch **watch) {
  *watch = NULL;
  atomic_fetch_add(&closed, 1);
}

static void stop(void *watcher) { watcher_stop(watcher); }

static void one_whose_wait_cannot_be_ended_ends_at_its_next_event(void **state) {
  static const struct store_ops ops = {
      .watch = open_watch, .watch_next = next_heartbeat, .watch_end = end_nothing, .watch_close = close_watch};
  static struct scheduler scheduler;
  static struct engine_metrics metrics;
  static struct watcher watcher;
  static struct thread stopper;
  const struct store store = {.ops = &ops};
  struct err err;
  mutex_init(&scheduler.hints.lock);
  mailbox_init(&scheduler.in);
  watcher = (struct watcher){.store = &store, .scheduler = &scheduler, .metrics = &metrics};
  assert_true(watcher_start(&watcher, &err));
  for (int64_t until_us = clock_mono_us() + LIMIT_US; atomic_load(&told) == 0 && clock_mono_us() < until_us;)
    thread_sleep(1000);
  assert_true(atomic_load(&told) > 0);
  assert_true(thread_start(&stopper, "stopper", stop, &watcher));
  assert_true(thread_join_within(&stopper, LIMIT_US / 1000));
  assert_int_equal(atomic_load(&closed), 1);
  mailbox_destroy(&scheduler.in);
  mutex_destroy(&scheduler.hints.lock);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_whose_wait_cannot_be_ended_ends_at_its_next_event),
  };
  return cmocka_run_group_tests_name("watcher", tests, NULL, NULL);
}
