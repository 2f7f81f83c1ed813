/* SPDX-License-Identifier: MIT */
#include "core/row_pace.h"

#include <stdbool.h>

enum {
  SLOW_TURNS = 2,  /* in a row, before fewer rows are tried: one may be slow by chance, */
  TRIED_TURNS = 3, /* and so may be those that are to show what was saved */
  CALM_MIN = 8,
  CALM_MAX = 64,
};

size_t row_pace_rows(const struct row_pace *pace, const struct row_limits *limits) {
  return pace->fewer ? pace->fewer : limits->most;
}

static void halve(struct row_pace *pace, size_t did) {
  pace->fewer = did / 2;
  pace->before_us = pace->quickest_us;
  pace->turns = 0;
}

static void redouble(struct row_pace *pace, const struct row_limits *limits) {
  pace->fewer = pace->fewer * 2 < limits->most ? pace->fewer * 2 : 0;
  pace->turns = 0;
}

/* The halving is judged by the quickest of some turns. True: this turn is not the one that decides for it. */
static bool judge(struct row_pace *pace, const struct row_limits *limits, int64_t took_us) {
  bool saved = took_us < pace->before_us / 10 * 7;
  if (!saved && ++pace->turns < TRIED_TURNS)
    return true;
  pace->before_us = 0;
  pace->turns = 0;
  if (saved) {
    pace->calms = 0;
    return false;
  }
  redouble(pace, limits);
  pace->calms = !pace->calms ? CALM_MIN : pace->calms < CALM_MAX ? pace->calms * 2 : CALM_MAX;
  pace->calm = pace->calms;
  return true;
}

void row_pace_note(struct row_pace *pace, const struct row_limits *limits, size_t did, int64_t took_us) {
  bool slow = took_us > limits->turn_us, all = did >= row_pace_rows(pace, limits);
  if (pace->before_us && (!all || judge(pace, limits, took_us)))
    return; /* of fewer rows one tells nothing */
  if (slow && pace->calm > 0) {
    pace->calm--;
  } else if (slow && did >= 2 * limits->least) {
    if (pace->turns == 0 || took_us < pace->quickest_us)
      pace->quickest_us = took_us;
    if (++pace->turns >= SLOW_TURNS)
      halve(pace, did);
  } else if (!slow && all) {
    pace->turns = 0;
    if (took_us < limits->turn_us / 2 && pace->fewer)
      redouble(pace, limits);
  }
}
