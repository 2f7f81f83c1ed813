/* SPDX-License-Identifier: MIT
 *
 * outbox/settle_parts.h - inside of outbox/: decisions that one lock may stop together are settled behind the others.
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
/* What halves.mark_left() does to a decision. */
void settle_mark_left(struct decision *d, enum left why);

#endif
