/* SPDX-License-Identifier: MIT
 *
 * outbox/halves.h - units that somebody else's lock stops are tried by halves, down to the element that is locked, so
 * that it is the only one that waits.
 */
#ifndef OUTBOX_HALVES_H
#define OUTBOX_HALVES_H

#include <stdbool.h>
#include <stddef.h>

#include "core/store.h"

struct halves {
  /* One transaction for the elements from first on. *stuck: a lock stopped it; none of them was written, and all are
   * marked as busy. */
  enum store_status (*at_once)(void *call, size_t first, size_t count, bool *stuck, struct err *err);
  /* Marks elements as busy: to be given again. */
  void (*mark_busy)(void *call, size_t first, size_t count);
  void *call;
};

/* Does count elements, at least one. STORE_OK: each is done or busy. Otherwise nothing was done, as far as can be
 * known. */
enum store_status halves_run(const struct halves *halves, size_t count, struct err *err);

#endif
