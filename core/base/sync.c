/* SPDX-License-Identifier: MIT */
#include "core/base/sync.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/clock.h"

static void must(int failed, const char *what) {
  if (!failed)
    return;
  (void)fprintf(stderr, "duebox: %s: %s\n", what, strerror(failed));
  abort();
}

static struct timespec timespec_of(int64_t us) {
  return (struct timespec){.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
}

void mutex_init(struct mutex *mutex) { must(pthread_mutex_init(&mutex->os, NULL), "pthread_mutex_init"); }
void mutex_destroy(struct mutex *mutex) { must(pthread_mutex_destroy(&mutex->os), "pthread_mutex_destroy"); }
void mutex_lock(struct mutex *mutex) { must(pthread_mutex_lock(&mutex->os), "pthread_mutex_lock"); }
void mutex_unlock(struct mutex *mutex) { must(pthread_mutex_unlock(&mutex->os), "pthread_mutex_unlock"); }

void cond_init(struct cond *cond) {
  pthread_condattr_t attr;
  must(pthread_condattr_init(&attr), "pthread_condattr_init");
  must(pthread_condattr_setclock(&attr, CLOCK_MONOTONIC), "pthread_condattr_setclock");
  must(pthread_cond_init(&cond->os, &attr), "pthread_cond_init");
  must(pthread_condattr_destroy(&attr), "pthread_condattr_destroy");
}
void cond_destroy(struct cond *cond) { must(pthread_cond_destroy(&cond->os), "pthread_cond_destroy"); }
void cond_signal(struct cond *cond) { must(pthread_cond_signal(&cond->os), "pthread_cond_signal"); }
void cond_broadcast(struct cond *cond) { must(pthread_cond_broadcast(&cond->os), "pthread_cond_broadcast"); }
void cond_wait(struct cond *cond, struct mutex *mutex) {
  must(pthread_cond_wait(&cond->os, &mutex->os), "pthread_cond_wait");
}

bool cond_wait_until(struct cond *cond, struct mutex *mutex, int64_t deadline_us) {
  const struct timespec until = timespec_of(deadline_us > 0 ? deadline_us : 0);
  int failed = pthread_cond_timedwait(&cond->os, &mutex->os, &until);
  must(failed == ETIMEDOUT ? 0 : failed, "pthread_cond_timedwait");
  return failed != ETIMEDOUT;
}

static void call_ended(void *arg) {
  struct thread *thread = arg;
  if (thread->ended)
    thread->ended(thread->arg);
}

static void *begin(void *arg) {
  struct thread *thread = arg;
  char title[16]; /* the kernel's limit */
  (void)snprintf(title, sizeof title, "%s", thread->name);
  (void)pthread_setname_np(pthread_self(), title);
  pthread_cleanup_push(call_ended, thread);
  thread->run(thread->arg);
  pthread_cleanup_pop(1);
  return NULL;
}

bool thread_start(struct thread *thread, const char *name, thread_fn *run, void *arg) {
  thread->name = name;
  thread->run = run;
  thread->arg = arg;
  return pthread_create(&thread->os, NULL, begin, thread) == 0;
}

void thread_join(struct thread *thread) { must(pthread_join(thread->os, NULL), "pthread_join"); }

bool thread_join_within(struct thread *thread, int64_t timeout_ms) {
  /* Wall time: the sanitizers know no join by another clock. */
  const struct timespec until = timespec_of(clock_wall_us() + timeout_ms * 1000);
  int failed = timeout_ms > 0 ? pthread_timedjoin_np(thread->os, NULL, &until) : pthread_tryjoin_np(thread->os, NULL);
  must(failed == ETIMEDOUT || failed == EBUSY ? 0 : failed, "pthread_timedjoin_np");
  return !failed;
}

void thread_detach(struct thread *thread) { must(pthread_detach(thread->os), "pthread_detach"); }
bool thread_is_caller(const struct thread *thread) { return pthread_equal(pthread_self(), thread->os); }

void thread_sleep(int64_t us) {
  const struct timespec pause = timespec_of(us);
  (void)nanosleep(&pause, NULL);
}
