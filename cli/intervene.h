/* SPDX-License-Identifier: MIT
 *
 * cli/intervene.h - cancel and reschedule with certainty: the daemon that holds a task's shard is asked, and where
 * nobody holds it the rows are changed directly under the shard's lock.
 *
 * A daemon may have a due task in its memory while its row still says scheduled. So a row of a held shard is never
 * changed from here: either its owner answers that it did, and the row shows it, or nothing was done. Who owns what is
 * read from the tables and read again when an answer or a lock shows that it has changed. What somebody else has locked
 * is tried for two seconds of the whole command, and passed over then.
 */
#ifndef CLI_INTERVENE_H
#define CLI_INTERVENE_H

#include "cli/cli.h"

struct intervener;

/* admin: for asking daemons. op and admin outlive it. */
MUSTCHECK bool intervener_new(const struct operator* op, const struct admin_config *admin, struct intervener **out,
                              struct err *err);
void intervener_free(struct intervener **intervener);

/* Does change (CANCEL or RESCHEDULE) to at most CHANGE_CHUNK living targets and sets their outcomes; each that is set
 * is certain. False: it had to stop. Then err says why (its code is an exit code), and targets with the outcome
 * CHANGE_OUTCOMES are as they were, unless the text says that this is not known of one. *audit: of what was done
 * directly; daemons write rows of their own. */
MUSTCHECK bool intervene(struct intervener *intervener, const struct task_change *change, struct task_target *targets,
                         size_t count, struct audit_span *audit, struct err *err);

/* How many tasks daemons have changed for it so far. */
uint64_t intervener_asked(const struct intervener *intervener);

#endif
