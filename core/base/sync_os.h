/* SPDX-License-Identifier: MIT
 *
 * core/base/sync_os.h - what core/base/sync.h is made of. The simulator has a file of this name of its own.
 */
#ifndef CORE_BASE_SYNC_OS_H
#define CORE_BASE_SYNC_OS_H

#include <pthread.h>

typedef pthread_mutex_t os_mutex;
typedef pthread_cond_t os_cond;
typedef pthread_t os_thread;

#endif
