/* SPDX-License-Identifier: MIT */
#include "outbox/halves.h"

enum { HALVINGS_MAX = 64 }; /* five rows of a batch of 4096 and more, each some milliseconds on MariaDB */

static enum store_status run(const struct halves *halves, size_t first, size_t count, unsigned *halvings,
                             struct err *err) {
  bool stuck = false;
  enum store_status status = halves->at_once(halves->call, first, count, &stuck, err);
  if (status != STORE_OK || !stuck || count == 1 || *halvings == 0)
    return status;
  (*halvings)--;
  size_t half = count / 2;
  status = run(halves, first, half, halvings, err);
  /* The first half is done: the second says what it met when it is given again. */
  if (status == STORE_OK && run(halves, first + half, count - half, halvings, err) != STORE_OK)
    halves->mark_busy(halves->call, first + half, count - half);
  return status;
}

enum store_status halves_run(const struct halves *halves, size_t count, struct err *err) {
  unsigned halvings = HALVINGS_MAX;
  return run(halves, 0, count, &halvings, err);
}
