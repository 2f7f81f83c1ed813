/* SPDX-License-Identifier: MIT
 *
 * admin/pool.h - a few worker threads for handlers that wait.
 *
 * Three queues: quick jobs (metrics, status), slow ones (what operators do to the database), and results. A worker of
 * the first two prefers quick jobs, and one takes nothing else, so that a database that hangs cannot blind the
 * operator. A result waits for a commit that it shares with others, so many must be able to wait at once: they have
 * workers of their own, started when there is none left for one, and whose turn it is says turns.h. The number of jobs
 * is bounded by the number of connections; of these one peer's results have a half at most, and one lane's a quarter.
 */
#ifndef ADMIN_POOL_H
#define ADMIN_POOL_H

#include <stdbool.h>
#include <sys/queue.h>

#include "admin/turns.h"
#include "core/base/attr.h"
#include "core/base/err.h"

/* Embedded in what the job is about; the pool keeps no memory of its own per job. */
struct job {
  STAILQ_ENTRY(job) next;
  void (*run)(struct job *job);
  struct turn turn;     /* of a result */
  struct turn_key from; /* of a result: set by who submits it */
};

enum pool_queue { POOL_QUICK, POOL_SLOW, POOL_RESULTS };
enum pool_answer {
  POOL_TAKEN,
  POOL_FULL,     /* too many results of that peer or lane wait */
  POOL_STOPPING, /* or stopped */
};

struct pool;

/* connections: what there is at most. */
MUSTCHECK bool pool_start(size_t connections, struct pool **out, struct err *err);
/* Queues a job. Any thread. */
MUSTCHECK enum pool_answer pool_submit(struct pool *pool, struct job *job, enum pool_queue queue);
/* Runs what is queued and ends the workers; from here on pool_submit() says no. */
void pool_stop(struct pool *pool);
/* When nobody can submit any more. */
void pool_free(struct pool **pool);

#endif
