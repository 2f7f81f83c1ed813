/* SPDX-License-Identifier: MIT
 *
 * outbox/settle_judge.h - inside of outbox/: what becomes of a decision, by what its row is now, and by what a COMMIT
 * without an answer may have written of it before. Pure.
 */
#ifndef OUTBOX_SETTLE_JUDGE_H
#define OUTBOX_SETTLE_JUDGE_H

#include "core/base/attr.h"
#include "core/store.h"

/* Whether there is no row any more when it was written. */
bool settle_ends(const struct decision *d);

/* Whether a value that a column does not take is cut in that form. */
bool settle_cuts(enum decision_form form);
/* Whether a decision that the server refused with that error may be taken in that form: the first ones leave all as it
 * is but for one thing each. */
bool settle_form_helps(enum decision_form form, int code);

/* The row was changed since it was read for d->sent. now: what it is, NULL = it cannot be read. same: with the same
 * content, so the decision stands, unless it is about another attempt and people have changed how many there may be. */
void settle_compare(struct decision *d, const struct task *now, bool same);
/* Takes those that are to be decided again out of a list. Returns how many are left. */
MUSTCHECK size_t settle_leave_again(struct decision **list, size_t count);

/* The COMMIT of that number got no answer: it may have written what was to be applied by it. */
void settle_note_unknown(struct decision *d, uint32_t commit);
/* A commit that got no answer was all or nothing: when a row that it wrote is as it was, it did not happen. Otherwise
 * it did, unless a failover lost it with its rows: then another has the id, or none where one is left. Of a busy row it
 * is found out later. What leaves no mark is written again: it comes to the same. What is found written is that from
 * now on: the rest of the batch may have to be tried again, and then nothing would tell.
 *
 * list: whose rows were looked at; those that are written leave it. as_it_was: those of them whose rows are as they
 * were decided about. Returns how many are left. */
MUSTCHECK size_t settle_resolve_unknown(struct decision **list, size_t count, struct decision *const *as_it_was,
                                        size_t as_it_was_count);

#endif
