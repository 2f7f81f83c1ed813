/* SPDX-License-Identifier: MIT
 *
 * admin/pool.c - the worker threads. One mutex guards both queues and the flag; it is held for a few instructions.
 */
#include "admin/pool.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* A result by callback waits for a commit that it shares with others, so several must be able to wait at once. */
enum { POOL_WORKERS = 8 };

STAILQ_HEAD(jobs, job);

struct pool {
  pthread_mutex_t lock;
  pthread_cond_t work;
  struct jobs quick, slow;
  bool stopping;
  bool reserved; /* the worker for quick jobs only has been named */
  pthread_t threads[POOL_WORKERS];
  int started;
};

/* Waits for a job this worker may run; NULL when the pool stops and there is none left. */
static struct job *next_job(struct pool *pool, bool quick_only) {
  struct job *job = NULL;
  pthread_mutex_lock(&pool->lock);
  for (;;) {
    struct jobs *queue = !STAILQ_EMPTY(&pool->quick) || quick_only ? &pool->quick : &pool->slow;
    job = STAILQ_FIRST(queue);
    if (job)
      STAILQ_REMOVE_HEAD(queue, next);
    if (job || pool->stopping)
      break;
    pthread_cond_wait(&pool->work, &pool->lock);
  }
  pthread_mutex_unlock(&pool->lock);
  return job;
}

static void *worker(void *arg) {
  struct pool *pool = arg;
  pthread_mutex_lock(&pool->lock);
  bool quick_only = !pool->reserved;
  pool->reserved = true;
  pthread_mutex_unlock(&pool->lock);
  for (struct job *job; (job = next_job(pool, quick_only)) != NULL;)
    job->run(job);
  return NULL;
}

bool pool_start(struct pool **out, struct err *err) {
  struct pool *pool = calloc(1, sizeof(*pool));
  *out = NULL;
  if (!pool)
    return err_set(err, 0, "admin: out of memory");
  STAILQ_INIT(&pool->quick);
  STAILQ_INIT(&pool->slow);
  pthread_mutex_init(&pool->lock, NULL);
  pthread_cond_init(&pool->work, NULL);
  for (; pool->started < POOL_WORKERS; pool->started++) {
    int rc = pthread_create(&pool->threads[pool->started], NULL, worker, pool);
    if (rc != 0) {
      pool_stop(pool);
      pool_free(&pool);
      return err_set(err, rc, "admin: cannot start a thread: %s; raise the limit of tasks (TasksMax, ulimit -u)",
                     strerror(rc));
    }
  }
  *out = pool;
  return true;
}

bool pool_submit(struct pool *pool, struct job *job, bool quick) {
  pthread_mutex_lock(&pool->lock);
  bool taken = !pool->stopping;
  if (taken)
    STAILQ_INSERT_TAIL(quick ? &pool->quick : &pool->slow, job, next);
  pthread_cond_broadcast(&pool->work); /* not signal: the one woken might be the one that takes quick jobs only */
  pthread_mutex_unlock(&pool->lock);
  return taken;
}

void pool_stop(struct pool *pool) {
  pthread_mutex_lock(&pool->lock);
  pool->stopping = true;
  pthread_cond_broadcast(&pool->work);
  pthread_mutex_unlock(&pool->lock);
  while (pool->started > 0)
    pthread_join(pool->threads[--pool->started], NULL);
}

void pool_free(struct pool **pool) {
  if (!*pool)
    return;
  pthread_cond_destroy(&(*pool)->work);
  pthread_mutex_destroy(&(*pool)->lock);
  free(*pool);
  *pool = NULL;
}
