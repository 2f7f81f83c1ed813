/* SPDX-License-Identifier: MIT
 *
 * admin/pool.c - the worker threads. One mutex guards the queues and the flags; it is held for a few instructions, and
 * while a thread is started.
 */
#include "admin/pool.h"

#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { POOL_WORKERS = 8, POOL_RESULT_WORKERS = 128 };

STAILQ_HEAD(jobs, job);

struct pool {
  pthread_mutex_t lock;
  pthread_cond_t work;
  pthread_cond_t result_work;
  struct jobs quick, slow;
  struct turns results;
  bool stopping;
  bool reserved; /* the worker for quick jobs only has been named */
  pthread_t threads[POOL_WORKERS];
  int started;
  pthread_t result_threads[POOL_RESULT_WORKERS];
  unsigned result_started, result_idle;
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

static struct job *job_of(struct turn *turn) {
  return (struct job *)(void *)((char *)turn - offsetof(struct job, turn));
}

static void find_worker(struct pool *pool);

static void *result_worker(void *arg) {
  struct pool *pool = arg;
  pthread_mutex_lock(&pool->lock);
  for (struct turn *turn;;) {
    while (!(turn = turns_take(&pool->results)) && !pool->stopping) {
      pool->result_idle++;
      pthread_cond_wait(&pool->result_work, &pool->lock);
      pool->result_idle--;
    }
    if (!turn) /* what waits for its lane is done by who works for that now */
      break;
    struct turn_lane *lane = turn->lane;
    struct job *job = job_of(turn);
    find_worker(pool); /* the worker that came free may have let more than one lane have another */
    pthread_mutex_unlock(&pool->lock);
    job->run(job);
    pthread_mutex_lock(&pool->lock);
    turns_done(&pool->results, lane);
  }
  pthread_mutex_unlock(&pool->lock);
  return NULL;
}

/* Under the lock. 0, or why there is none more. */
static int add_result_worker(struct pool *pool) {
  int rc = pthread_create(&pool->result_threads[pool->result_started], NULL, result_worker, pool);
  pool->result_started += rc == 0;
  return rc;
}

static unsigned share(size_t connections, size_t part) {
  return connections > part ? (unsigned)(connections / part) : 1;
}

bool pool_start(size_t connections, struct pool **out, struct err *err) {
  struct pool *pool = calloc(1, sizeof(*pool));
  *out = NULL;
  if (!pool)
    return err_set(err, 0, "admin: out of memory");
  STAILQ_INIT(&pool->quick);
  STAILQ_INIT(&pool->slow);
  turns_init(&pool->results, &(struct turn_limits){.workers = POOL_RESULT_WORKERS,
                                                   .lane_max = share(connections, 4),
                                                   .peer_max = share(connections, 2)});
  pthread_mutex_init(&pool->lock, NULL);
  pthread_cond_init(&pool->work, NULL);
  pthread_cond_init(&pool->result_work, NULL);
  int rc = add_result_worker(pool);
  while (rc == 0 && pool->started < POOL_WORKERS) {
    rc = pthread_create(&pool->threads[pool->started], NULL, worker, pool);
    pool->started += rc == 0;
  }
  if (rc != 0) {
    pool_stop(pool);
    pool_free(&pool);
    return err_set(err, rc, "admin: cannot start a thread: %s; raise the limit of tasks (TasksMax, ulimit -u)",
                   strerror(rc));
  }
  *out = pool;
  return true;
}

/* Under the lock: for what may have a worker. Where no thread can be started it waits for those that there are. */
static void find_worker(struct pool *pool) {
  if (!turns_ready(&pool->results))
    return;
  if (pool->results.waiting > pool->result_idle && pool->result_started < POOL_RESULT_WORKERS)
    (void)add_result_worker(pool);
  pthread_cond_signal(&pool->result_work);
}

/* Under the lock. */
static enum pool_answer submit_result(struct pool *pool, struct job *job) {
  if (!turns_put(&pool->results, &job->from, &job->turn))
    return POOL_FULL;
  find_worker(pool);
  return POOL_TAKEN;
}

enum pool_answer pool_submit(struct pool *pool, struct job *job, enum pool_queue queue) {
  enum pool_answer answer = POOL_TAKEN;
  pthread_mutex_lock(&pool->lock);
  if (pool->stopping)
    answer = POOL_STOPPING;
  else if (queue == POOL_RESULTS)
    answer = submit_result(pool, job);
  else
    STAILQ_INSERT_TAIL(queue == POOL_QUICK ? &pool->quick : &pool->slow, job, next);
  pthread_cond_broadcast(&pool->work); /* not signal: the one woken might be the one that takes quick jobs only */
  pthread_mutex_unlock(&pool->lock);
  return answer;
}

void pool_stop(struct pool *pool) {
  pthread_mutex_lock(&pool->lock);
  pool->stopping = true;
  pthread_cond_broadcast(&pool->work);
  pthread_cond_broadcast(&pool->result_work);
  pthread_mutex_unlock(&pool->lock);
  while (pool->started > 0)
    pthread_join(pool->threads[--pool->started], NULL);
  while (pool->result_started > 0)
    pthread_join(pool->result_threads[--pool->result_started], NULL);
}

void pool_free(struct pool **pool) {
  if (!*pool)
    return;
  pthread_cond_destroy(&(*pool)->result_work);
  pthread_cond_destroy(&(*pool)->work);
  pthread_mutex_destroy(&(*pool)->lock);
  free(*pool);
  *pool = NULL;
}
