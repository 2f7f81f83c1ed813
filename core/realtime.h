/* SPDX-License-Identifier: MIT
 *
 * core/realtime.h - precedence over other work of the machine: a real-time priority, and processors of one's own.
 *
 * Off unless configured. The threads that a task passes on its way out (scheduler, drivers with the threads that their
 * plugins make, settler) get the lowest real-time priority, SCHED_RR 1: ahead of all ordinary work, behind everything
 * that the machine itself runs so. The kernel's own limit (sched_rt_runtime_us) leaves others a part of each second.
 *
 * What is not allowed or not possible is said in the log, and the daemon runs without.
 */
#ifndef CORE_REALTIME_H
#define CORE_REALTIME_H

#include <sched.h>
#include <stdbool.h>

#include "core/base/attr.h"

/* Reads a list such as "0-3,6"; false when it is none or names a processor beyond CPU_SETSIZE. */
MUSTCHECK bool cpus_parse(const char *text, cpu_set_t *out);

/* Binds the process to the processors of the list, NULL = all. On the main thread before any other is made: threads
 * inherit it. */
void realtime_bind(const char *cpus);

/* Gives the calling thread the real-time priority when that is wanted; threads that it makes inherit it. */
void realtime_thread(bool wanted, const char *name);

/* The waits of the calling thread end within a microsecond of their time, not within the kernel's usual 50. */
void realtime_punctual(void);

#endif
