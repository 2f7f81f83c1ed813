/* SPDX-License-Identifier: MIT
 *
 * admin/pool.h - a few worker threads for handlers that wait.
 *
 * Two queues: quick jobs (metrics, status) and slow ones (whatever waits for the database). Every worker prefers quick
 * jobs, and the first takes nothing else, so that a database that hangs cannot blind the operator. The number of jobs
 * is bounded by the number of connections; nothing here drops or refuses one while the pool runs.
 */
#ifndef ADMIN_POOL_H
#define ADMIN_POOL_H

#include <stdbool.h>
#include <sys/queue.h>

#include "core/base/attr.h"
#include "core/base/err.h"

/* Embedded in what the job is about; the pool keeps no memory of its own per job. */
struct job {
  STAILQ_ENTRY(job) next;
  void (*run)(struct job *job);
};

struct pool;

MUSTCHECK bool pool_start(struct pool **out, struct err *err);
/* Queues a job; false once the pool is stopping. Any thread. */
MUSTCHECK bool pool_submit(struct pool *pool, struct job *job, bool quick);
/* Runs what is queued and ends the workers; from here on pool_submit() says no. */
void pool_stop(struct pool *pool);
/* When nobody can submit any more. */
void pool_free(struct pool **pool);

#endif
