/* SPDX-License-Identifier: MIT
 *
 * outbox/results_fit.h - inside of outbox/: how many results one transaction takes, by what they and their rows hold.
 * The others are postponed: to be given again, and no later one of their task before them.
 *
 * What a row holds is known when it is locked. Whoever locks a large one reads all of it, for milliseconds, so few are
 * locked at first, and more as long as they are small. Pure.
 */
#ifndef OUTBOX_RESULTS_FIT_H
#define OUTBOX_RESULTS_FIT_H

#include "core/base/attr.h"
#include "outbox/results_judge.h"
#include "outbox/sql.h"

/* The rows that the results of a unit have found. */
struct results_fit {
  uint64_t *ids;           /* ascending */
  size_t count, next;      /* rows; those from next on are not locked yet */
  size_t taken, row_bytes; /* rows that have room, and what they hold */
  size_t bytes;            /* of the records and of these rows */
  size_t likely;           /* bytes that a row holds, as far as that is known before: see results_fit_usual() */
  bool full;               /* one had no room */
};

/* Before anything is asked: whether a record of so many bytes fits into the unit, whatever its row is. What is kept of
 * it is written, in the quarantine or in the row. */
bool results_fit_record(const struct results_unit *unit, size_t bytes);

/* Makes room for as many ids as there can be; the caller adds them in any order. likely: what results_fit_usual() said
 * of the transaction before; 0 = nothing. False: out of memory. */
MUSTCHECK bool results_fit_begin(struct results_fit *fit, const struct results_unit *unit, size_t likely);
void results_fit_add(struct results_fit *fit, uint64_t id);
/* The ids that are to be locked and read next: "1,2". False when there are no more, or none would fit. */
MUSTCHECK bool results_fit_part(struct results_fit *fit, struct text *ids);
/* One of them was read, for the results from first to end: postpones these if it has no room. The first one has. */
void results_fit_row(struct results_fit *fit, struct slot *first, const struct slot *end);
/* The ids of those that were never locked, whose results are to be postponed. False when there is none. */
MUSTCHECK bool results_fit_rest(const struct results_fit *fit, struct text *ids);
/* How many bytes a row has held so far, never 0; with none so far what was likely. */
size_t results_fit_usual(const struct results_fit *fit);
void results_fit_end(struct results_fit *fit);

#endif
