/* SPDX-License-Identifier: MIT
 *
 * admin/pool.h - a few worker threads for handlers that wait.
 *
 * Three queues: quick jobs (metrics, status), slow ones (what operators do to the database), and results. A worker of
 * the first two prefers quick jobs, and one takes nothing else, so that a database that hangs cannot blind the
 * operator. A result waits for a commit that it shares with others, so many must be able to wait at once: they have
 * workers of their own, started when there is none left for one. The number of jobs is bounded by the number of
 * connections; nothing here drops or refuses one while the pool runs.
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

enum pool_queue { POOL_QUICK, POOL_SLOW, POOL_RESULTS };

struct pool;

MUSTCHECK bool pool_start(struct pool **out, struct err *err);
/* Queues a job; false once the pool is stopping. Any thread. */
MUSTCHECK bool pool_submit(struct pool *pool, struct job *job, enum pool_queue queue);
/* Runs what is queued and ends the workers; from here on pool_submit() says no. */
void pool_stop(struct pool *pool);
/* When nobody can submit any more. */
void pool_free(struct pool **pool);

#endif
