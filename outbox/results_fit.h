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

/* The rows that the results of a unit have met, by id. */
struct results_fit {
  struct results_unit *unit;
  struct slot **slots;       /* of each row the first */
  size_t count, judged, end; /* rows; those behind `judged` are of this part, up to `end` */
  size_t bytes;              /* of the records, and of the rows that are taken */
  bool full;                 /* one had no room */
};

/* Before anything is asked: whether a record of so many bytes fits into the unit, whatever its row is. What is kept of
 * it is written, in the quarantine or in the row. */
bool results_fit_record(const struct results_unit *unit, size_t bytes);

/* The rows are found. False: out of memory. */
MUSTCHECK bool results_fit_begin(struct results_fit *fit, struct results_unit *unit);
/* The ids that are to be locked and read next: "1,2". False when there are no more, or none would fit. */
MUSTCHECK bool results_fit_part(struct results_fit *fit, struct text *ids);
/* They were read, as far as nobody else holds them. Postpones those that have no room; the first one has. */
void results_fit_judge(struct results_fit *fit);
/* Postpones those that were never read. */
void results_fit_end(struct results_fit *fit);

#endif
