/* SPDX-License-Identifier: MIT
 *
 * outbox/settle_parts.h - inside of outbox/: which decisions of a batch are settled, and with which others.
 */
#ifndef OUTBOX_SETTLE_PARTS_H
#define OUTBOX_SETTLE_PARTS_H

#include "outbox/halves.h"

/* Settles count decisions by halves.at_once() and the others, which find them at *decisions. A task that tells of a
 * dead one is put at the end of the table, which one lock closes to all of them: those come last, and are found out
 * together.
 */
enum store_status settle_parts(struct halves halves, struct decision **decisions, size_t count, struct err *err);

/* A decision that was refused is tried by itself: those of its kin among the `behind` ones that follow it are left. */
void settle_leave_kin(struct decision *d, size_t behind);
/* The row was changed since it was read for d->sent. now: what it is, NULL = it cannot be read. same: with the same
 * content, so the decision stands, unless it is about another attempt and people have changed how many there may be. */
void settle_compare(struct decision *d, const struct task *now, bool same);
/* Takes those that are to be decided again out of the list. Returns how many are left. */
size_t settle_leave_again(struct decision **applying, size_t count);
/* What halves.mark_left() does to a decision. */
void settle_mark_left(struct decision *d, enum left why);

#endif
