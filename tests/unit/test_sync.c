/* SPDX-License-Identifier: MIT
 *
 * tests/unit/test_sync.c - threads and waiting: what the core relies on.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/base/clock.h"
#include "core/base/sync.h"

struct door {
  struct thread thread;
  struct mutex mutex;
  struct cond cond;
  bool open, is_caller;
  atomic_bool ended;
};

static void wait_at(void *arg) {
  struct door *door = arg;
  mutex_lock(&door->mutex);
  door->is_caller = thread_is_caller(&door->thread);
  while (!door->open)
    cond_wait(&door->cond, &door->mutex);
  mutex_unlock(&door->mutex);
}

static void leave_at_once(void *arg) {
  (void)arg;
  pthread_exit(NULL);
}

static void note_end(void *arg) { atomic_store(&((struct door *)arg)->ended, true); }

static struct door *door_new(struct door *door) {
  *door = (struct door){0};
  mutex_init(&door->mutex);
  cond_init(&door->cond);
  return door;
}

static void door_free(struct door *door) {
  cond_destroy(&door->cond);
  mutex_destroy(&door->mutex);
}

static void a_deadline_that_has_come_ends_the_wait(void **state) {
  struct door door;
  door_new(&door);
  mutex_lock(&door.mutex);
  int64_t now = clock_mono_us();
  while (cond_wait_until(&door.cond, &door.mutex, now + 2000))
    ;
  assert_true(clock_mono_us() >= now + 2000);
  while (cond_wait_until(&door.cond, &door.mutex, -1)) /* before the clock began */
    ;
  mutex_unlock(&door.mutex);
  door_free(&door);
}

static void a_join_gives_up_at_its_time_and_may_be_repeated(void **state) {
  struct door door;
  door_new(&door);
  door.thread.ended = note_end;
  assert_true(thread_start(&door.thread, "a name that is too long for the kernel", wait_at, &door));
  assert_false(thread_join_within(&door.thread, 0));
  assert_false(thread_join_within(&door.thread, 1));
  assert_false(atomic_load(&door.ended));
  mutex_lock(&door.mutex);
  door.open = true;
  cond_broadcast(&door.cond);
  mutex_unlock(&door.mutex);
  assert_true(thread_join_within(&door.thread, 60 * 1000));
  assert_true(door.is_caller);
  assert_true(atomic_load(&door.ended));
  assert_false(thread_is_caller(&door.thread));
  door_free(&door);
}

static void the_end_is_told_where_a_plugin_ends_its_thread(void **state) {
  struct door door;
  door_new(&door);
  door.thread.ended = note_end;
  assert_true(thread_start(&door.thread, "plugin", leave_at_once, &door));
  thread_join(&door.thread);
  assert_true(atomic_load(&door.ended));
  door_free(&door);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_deadline_that_has_come_ends_the_wait),
      cmocka_unit_test(a_join_gives_up_at_its_time_and_may_be_repeated),
      cmocka_unit_test(the_end_is_told_where_a_plugin_ends_its_thread),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
