/* SPDX-License-Identifier: MIT
 *
 * core/mailbox.h - how tasks pass from thread to thread: flights go in, one thread takes them all out.
 *
 * Unbounded by itself; what can be in it is bounded by the lanes' credit. One lock for a whole batch, never per task.
 */
#ifndef CORE_MAILBOX_H
#define CORE_MAILBOX_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/sync.h"
#include "core/flight.h"

struct mailbox {
  struct mutex lock;
  struct cond filled; /* waits by the monotonic clock */
  struct flight_list list;
  bool poked;
};

void mailbox_init(struct mailbox *box);
void mailbox_destroy(struct mailbox *box);
/* Adds all flights of list, which becomes empty, and wakes the reader. Any thread. */
void mailbox_put(struct mailbox *box, struct flight_list *list);
/* Wakes the reader without anything new. Any thread. */
void mailbox_poke(struct mailbox *box);
/* Waits until there is something, somebody pokes, or the monotonic deadline (us; 0 = do not wait) comes; adds
 * everything to *out. True when poked. The reader's thread. */
bool mailbox_take(struct mailbox *box, int64_t deadline_us, struct flight_list *out);
size_t mailbox_count(struct mailbox *box);

#endif
