/* SPDX-License-Identifier: MIT */
#include "cli/patience.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

/* Of both threads; the last one out frees it. */
struct shared {
  void (*work)(void *arg);
  void *arg;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  bool done, left;
};

static void destroy(struct shared *shared) {
  pthread_cond_destroy(&shared->changed);
  pthread_mutex_destroy(&shared->lock);
  free(shared);
}

static void *run(void *handle) {
  struct shared *shared = handle;
  shared->work(shared->arg);
  pthread_mutex_lock(&shared->lock);
  shared->done = true;
  bool left = shared->left;
  pthread_cond_signal(&shared->changed);
  pthread_mutex_unlock(&shared->lock);
  if (left)
    destroy(shared);
  return NULL;
}

enum patience patience_run(void (*work)(void *arg), void *arg, int limit_s) {
  struct shared *shared = calloc(1, sizeof *shared);
  struct timespec end;
  pthread_t thread;
  if (!shared)
    return PATIENCE_REFUSED;
  *shared =
      (struct shared){.work = work, .arg = arg, .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
  if (pthread_create(&thread, NULL, run, shared) != 0) {
    destroy(shared);
    return PATIENCE_REFUSED;
  }
  clock_gettime(CLOCK_REALTIME, &end);
  end.tv_sec += limit_s;
  pthread_mutex_lock(&shared->lock);
  while (!shared->done && pthread_cond_timedwait(&shared->changed, &shared->lock, &end) == 0)
    ;
  bool done = shared->done;
  shared->left = !done;
  pthread_mutex_unlock(&shared->lock);
  if (!done) {
    pthread_detach(thread);
    return PATIENCE_LASTING;
  }
  pthread_join(thread, NULL);
  destroy(shared);
  return PATIENCE_DONE;
}
