/* SPDX-License-Identifier: MIT */
#include "core/row_pace.h"

#include <stdbool.h>

enum { CALM_TURNS = 16 };

size_t row_pace_rows(const struct row_pace *pace, const struct row_limits *limits) {
  return pace->fewer ? pace->fewer : limits->most;
}

static void halve(struct row_pace *pace, size_t did, int64_t took_us) {
  pace->fewer = did / 2;
  pace->before_us = took_us;
}

static void redouble(struct row_pace *pace, const struct row_limits *limits) {
  pace->fewer = pace->fewer * 2 < limits->most ? pace->fewer * 2 : 0;
}

void row_pace_note(struct row_pace *pace, const struct row_limits *limits, size_t did, int64_t took_us) {
  bool judged = pace->before_us > 0, saved = took_us<pace->before_us / 8 * 5, slow = took_us> limits->turn_us;
  pace->before_us = 0;
  if (judged && !saved) {
    redouble(pace, limits);
    pace->calm = CALM_TURNS;
  } else if (slow && pace->calm > 0) {
    pace->calm--;
  } else if (slow && did >= 2 * limits->least) {
    halve(pace, did, took_us);
  } else if (took_us < limits->turn_us / 2 && pace->fewer && did >= pace->fewer) {
    redouble(pace, limits);
  }
}
