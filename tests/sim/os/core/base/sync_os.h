/* SPDX-License-Identifier: MIT
 *
 * tests/sim/os/core/base/sync_os.h - what core/base/sync.h is made of in the simulator. Found before that of core/.
 */
#ifndef CORE_BASE_SYNC_OS_H
#define CORE_BASE_SYNC_OS_H

typedef struct {
  struct strand *owner;
  unsigned number; /* in the order in which they were made: addresses differ from run to run */
} os_mutex;
typedef struct {
  unsigned number;
} os_cond;
typedef struct strand *os_thread;

#endif
