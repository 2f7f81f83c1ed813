/* SPDX-License-Identifier: MIT
 *
 * core/base/sync.h - threads, locks and waiting: the only way by which the core starts something or waits.
 *
 * All deadlines are by the monotonic clock, in microseconds. A lock or condition that cannot be made, or that is used
 * against its rules, leaves nothing to decide: the process says so and aborts.
 */
#ifndef CORE_BASE_SYNC_H
#define CORE_BASE_SYNC_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/attr.h"
#include "core/base/sync_os.h"

struct mutex {
  os_mutex os;
};

void mutex_init(struct mutex *mutex);
void mutex_destroy(struct mutex *mutex);
void mutex_lock(struct mutex *mutex);
void mutex_unlock(struct mutex *mutex);

struct cond {
  os_cond os;
};

void cond_init(struct cond *cond);
void cond_destroy(struct cond *cond);
void cond_signal(struct cond *cond);
void cond_broadcast(struct cond *cond);
/* With the mutex held. Both may return without reason: whoever waits asks again for what it waits for. */
void cond_wait(struct cond *cond, struct mutex *mutex);
/* False: the deadline has come. */
bool cond_wait_until(struct cond *cond, struct mutex *mutex, int64_t deadline_us);

typedef void thread_fn(void *arg);

/* The owner's memory, for as long as the thread runs. */
struct thread {
  os_thread os;
  const char *name;
  thread_fn *run;
  thread_fn *ended; /* NULL, or set before the start: called in the thread with arg when it is over, also where a plugin
                       ends it by pthread_exit() */
  void *arg;
};

/* name: lives as long as the thread; the kernel shows its first 15 bytes. False: the process may have no more of them.
 */
MUSTCHECK bool thread_start(struct thread *thread, const char *name, thread_fn *run, void *arg);
/* Waits for its end; once for every thread that was started, unless it is detached. */
void thread_join(struct thread *thread);
/* The same, for at most so long. False: it still runs, and is to be joined or detached. */
MUSTCHECK bool thread_join_within(struct thread *thread, int64_t timeout_ms);
void thread_detach(struct thread *thread);
/* Whether the caller is that thread. */
bool thread_is_caller(const struct thread *thread);
void thread_sleep(int64_t us);

#endif
