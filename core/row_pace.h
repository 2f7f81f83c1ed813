/* SPDX-License-Identifier: MIT
 *
 * core/row_pace.h - how many rows a thread that all routes share handles in a turn, while the others wait.
 *
 * Pure. Fewer rows are worth it only where it is they that take the time: behind a slow network or disk a turn takes as
 * long with any number of them, and few would only cost throughput. So each halving is judged by what it saved. What
 * one turn takes is a matter of chance on a busy machine: the quickest of some is compared with the quickest before.
 */
#ifndef CORE_ROW_PACE_H
#define CORE_ROW_PACE_H

#include <stddef.h>
#include <stdint.h>

struct row_limits {
  size_t least, most; /* rows */
  int64_t turn_us;    /* how long a turn may take before it is tried with fewer rows */
};

/* All zero at the beginning. */
struct row_pace {
  size_t fewer;         /* of the next turn, at most; 0 = any number */
  unsigned turns;       /* long ones in a row with as many rows, or since they were halved, */
  int64_t quickest_us;  /* of these */
  int64_t before_us;    /* the same before the rows were halved; 0 = that is judged */
  unsigned calm, calms; /* long turns that are still to be left as they are, since halving saved little; and how many
                           the last time */
};

/* How many rows the next turn may have. */
size_t row_pace_rows(const struct row_pace *pace, const struct row_limits *limits);
/* After a turn of `did` rows that took took_us. */
void row_pace_note(struct row_pace *pace, const struct row_limits *limits, size_t did, int64_t took_us);

#endif
