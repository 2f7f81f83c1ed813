/* SPDX-License-Identifier: MIT */
#include "outbox/settle_parts.h"

#include <stdlib.h>

#include "outbox/db_error.h"

static bool tells(const struct decision *d) { return d->event == EVENT_DEAD && d->alert_route; }

/* Between where they came from and an array that has those that tell behind the others. */
static void move(struct decision *decisions, struct decision *parted, size_t count, size_t others, bool back) {
  size_t at[] = {0, others};
  for (size_t i = 0; i < count; i++) {
    struct decision *place = &parted[at[tells(&decisions[i])]++];
    *(back ? &decisions[i] : place) = *(back ? place : &decisions[i]);
  }
}

enum store_status settle_parts(struct halves halves, struct decision **decisions, size_t count, struct err *err) {
  struct decision *given = *decisions;
  size_t telling = 0;
  struct err later = {0};
  for (size_t i = 0; i < count; i++)
    telling += tells(&given[i]);
  size_t others = count - telling;
  halves.alike = others == 0;
  if (telling == 0 || others == 0)
    return halves_run(&halves, count, err);
  struct decision *parted = calloc(count, sizeof *parted);
  if (!parted) {
    err_set(err, DB_E_NO_MEMORY, "settling %zu rows: out of memory; %s", count, db_error_cure(DB_E_NO_MEMORY));
    return STORE_DOWN;
  }
  move(given, parted, count, others, false);
  *decisions = parted;
  enum store_status status = halves_run(&halves, others, err);
  *decisions = parted + others;
  halves.alike = true;
  /* The others are done: these say what they met when they are given again. */
  if (status == STORE_OK && halves_run(&halves, telling, *err->text ? &later : err) != STORE_OK)
    halves.mark_left(halves.call, 0, telling, LEFT_LOCKED);
  move(given, parted, count, others, true);
  *decisions = given;
  free(parted);
  return status;
}

void settle_leave_kin(struct decision *d, size_t behind) {
  for (size_t i = 1; d->kin && i <= behind; i++)
    d[i].left = d[i].busy = !d[i].written && (d[i].left || d[i].kin == d->kin);
}

void settle_mark_left(struct decision *d, enum left why) {
  if (d->written)
    return;
  d->refused = why == LEFT_REFUSED;
  d->busy = !d->refused;
  d->left = d->busy && (d->left || why == LEFT_UNTRIED);
}
