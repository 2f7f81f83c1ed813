/* SPDX-License-Identifier: MIT
 *
 * outbox/halves.h - units that somebody else's lock or the server's refusal stops are tried by halves, down to the
 * element that it is about, so that it is the only one that waits, or is written in another form.
 */
#ifndef OUTBOX_HALVES_H
#define OUTBOX_HALVES_H

#include <stdbool.h>
#include <stddef.h>

#include "core/store.h"

/* What stopped a unit. Nothing of it was written then. */
enum stopped { STOPPED_NOT, STOPPED_LOCKED, STOPPED_REFUSED };

/* Why elements are to be given again. */
enum left {
  LEFT_LOCKED,  /* they have met a lock, or others have */
  LEFT_UNTRIED, /* some of them are refused, and finding out which would take too long now */
  LEFT_REFUSED, /* all that were tried are refused */
};

struct halves {
  /* One transaction for the elements from first on. STOPPED_LOCKED: all are marked as busy, and it returns STORE_OK. */
  enum store_status (*at_once)(void *call, size_t first, size_t count, enum stopped *stopped, struct err *err);
  /* One element that the server refused: in another form, or marked as refused in every one. *done: it is written.
   * None of the `behind` elements that come behind it was done yet. */
  enum store_status (*alone)(void *call, size_t at, size_t behind, bool *done, struct err *err);
  void (*mark_left)(void *call, size_t first, size_t count, enum left why);
  void *call;
  bool alike; /* a lock is likely to be met by all: when the first meets it too, the others are left for later */
};

/* Does count elements, at least one. STORE_OK: each is done, busy or refused; err says why, when one was refused.
 * Otherwise nothing was done, as far as can be known. */
enum store_status halves_run(const struct halves *halves, size_t count, struct err *err);

#endif
