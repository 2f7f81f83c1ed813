/* SPDX-License-Identifier: MIT
 *
 * outbox/settle_compare.h - inside of outbox/: whether rows that are to be settled are still what was sent of them.
 *
 * Both go through decisions by rising row id, whose rows are locked, and set or clear `changed`.
 */
#ifndef OUTBOX_SETTLE_COMPARE_H
#define OUTBOX_SETTLE_COMPARE_H

#include "outbox/session.h"

/* Of the rows from *from on that were changed since they were read (`changed` is set), finds those that are another
 * task now than what was sent: as many as may come in one answer. *from: the first that is left. */
MUSTCHECK bool settle_compare_changed(struct store_session *ss, struct decision *const *list, size_t count,
                                      size_t *from, struct err *err);
/* Of the rows whose result did not come, finds those that were changed while it was awaited: they are due again as they
 * are now, whatever was decided. */
MUSTCHECK bool settle_compare_awaited(struct store_session *ss, struct decision *const *list, size_t count,
                                      struct err *err);
/* Nobody remembers what was sent of it: the row has a digest. */
bool settle_is_awaited(const struct decision *d);

#endif
