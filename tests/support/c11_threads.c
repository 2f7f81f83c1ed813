/* SPDX-License-Identifier: MIT
 *
 * tests/support/c11_threads.c - <threads.h> on top of pthreads, for builds with ThreadSanitizer only.
 *
 * librdkafka uses C11 threads. GCC's ThreadSanitizer knows pthreads and not those: it crashes in the first malloc of a
 * thread it never saw start, and misses every lock. Linked into a program, these functions take the place of the C
 * library's, and the sanitizer sees threads, locks and condition variables of librdkafka as they are. The types have
 * the same size and meaning in glibc, where each is a pthread type in disguise.
 *
 * Two suppressions go with it: librdkafka is not instrumented, so its atomic reference counts are unknown to the
 * sanitizer, and a free() in one of its threads seems to race with whoever used the memory under an earlier count; the
 * same holds for a lock that is published through an atomic.
 * What our own code touches is watched all the same.
 */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <threads.h>

_Static_assert(sizeof(mtx_t) >= sizeof(pthread_mutex_t), "mtx_t holds a pthread_mutex_t");
_Static_assert(sizeof(cnd_t) >= sizeof(pthread_cond_t), "cnd_t holds a pthread_cond_t");

#define EXPORT __attribute__((visibility("default"))) /* librdkafka must find them */

struct start {
  thrd_start_t function;
  void *arg;
};

static void *run(void *arg) {
  struct start start = *(struct start *)arg;
  free(arg);
  return (void *)(intptr_t)start.function(start.arg);
}

EXPORT int thrd_create(thrd_t *thread, thrd_start_t function, void *arg) {
  struct start *start = malloc(sizeof(*start));
  if (!start)
    return thrd_nomem;
  *start = (struct start){function, arg};
  if (pthread_create((pthread_t *)thread, NULL, run, start) == 0)
    return thrd_success;
  free(start);
  return thrd_error;
}

EXPORT int thrd_join(thrd_t thread, int *result) {
  void *value;
  if (pthread_join((pthread_t)thread, &value) != 0)
    return thrd_error;
  if (result)
    *result = (int)(intptr_t)value;
  return thrd_success;
}

EXPORT int mtx_init(mtx_t *mutex, int type) {
  pthread_mutexattr_t attr;
  pthread_mutexattr_init(&attr);
  if (type & mtx_recursive)
    pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
  int rc = pthread_mutex_init((pthread_mutex_t *)mutex, &attr);
  pthread_mutexattr_destroy(&attr);
  return rc ? thrd_error : thrd_success;
}

EXPORT int mtx_lock(mtx_t *mutex) { return pthread_mutex_lock((pthread_mutex_t *)mutex) ? thrd_error : thrd_success; }

EXPORT int mtx_unlock(mtx_t *mutex) {
  return pthread_mutex_unlock((pthread_mutex_t *)mutex) ? thrd_error : thrd_success;
}

EXPORT void mtx_destroy(mtx_t *mutex) { pthread_mutex_destroy((pthread_mutex_t *)mutex); }

EXPORT int cnd_init(cnd_t *cond) { return pthread_cond_init((pthread_cond_t *)cond, NULL) ? thrd_error : thrd_success; }

EXPORT int cnd_signal(cnd_t *cond) { return pthread_cond_signal((pthread_cond_t *)cond) ? thrd_error : thrd_success; }

EXPORT int cnd_broadcast(cnd_t *cond) {
  return pthread_cond_broadcast((pthread_cond_t *)cond) ? thrd_error : thrd_success;
}

EXPORT int cnd_wait(cnd_t *cond, mtx_t *mutex) {
  return pthread_cond_wait((pthread_cond_t *)cond, (pthread_mutex_t *)mutex) ? thrd_error : thrd_success;
}

EXPORT int cnd_timedwait(cnd_t *cond, mtx_t *mutex, const struct timespec *until) {
  int rc = pthread_cond_timedwait((pthread_cond_t *)cond, (pthread_mutex_t *)mutex, until);
  return rc == 0 ? thrd_success : rc == ETIMEDOUT ? thrd_timedout : thrd_error;
}

EXPORT void cnd_destroy(cnd_t *cond) { pthread_cond_destroy((pthread_cond_t *)cond); }

const char *__tsan_default_suppressions(void);
EXPORT const char *__tsan_default_suppressions(void) { return "called_from_lib:librdkafka.so\nrace:mtx_lock\n"; }
