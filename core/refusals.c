/* SPDX-License-Identifier: MIT */
#include "core/refusals.h"

enum {
  REST = 9,                       /* times as long as a turn took the others have, where some wait, */
  REST_MAX_US = 10 * 1000 * 1000, /* up to this: the database may have been away meanwhile */
};

static bool is_known(const struct refusals_of *of) { return of->alike >= REFUSALS_ALIKE && of->form != DECISION_FORMS; }

/* How many in a row that are taken whole end a form. What is left out is so of those too that would be taken whole: the
 * first of them ends it. What is only cut costs none of those anything, and rows that fit may come between all along.
 */
static unsigned wholes_to_end(enum decision_form form) { return form == DECISION_CUT ? REFUSALS_ALIKE : 1; }

enum refusals_way refusals_way(struct outcome_refusals *refusals, enum task_event event, int64_t now_us) {
  struct refusals_of *of = &refusals->of[event];
  if (!is_known(of))
    return now_us < refusals->apart_until_us ? REFUSALS_APART : REFUSALS_TOGETHER;
  if (now_us < of->whole_at_us)
    return REFUSALS_TOGETHER;
  of->whole_at_us = now_us + REFUSALS_WHOLE_US;
  return REFUSALS_PROBE;
}

enum decision_form refusals_least(const struct outcome_refusals *refusals, enum task_event event) {
  return is_known(&refusals->of[event]) ? refusals->of[event].form : DECISION_WHOLE;
}

bool refusals_note(struct outcome_refusals *refusals, enum task_event event, enum decision_form least,
                   enum decision_form written, int64_t now_us) {
  struct refusals_of *of = &refusals->of[event];
  bool known = is_known(of);
  if (written == least) {
    if (least != DECISION_WHOLE || ++of->wholes < wholes_to_end(of->form))
      return false;
    *of = (struct refusals_of){0};
    return known;
  }
  of->wholes = 0;
  refusals->count++;
  refusals->apart_until_us = now_us + REFUSALS_APART_US;
  of->alike = written == of->form ? of->alike + 1 : 1;
  of->form = written;
  if (known || !is_known(of))
    return false;
  of->whole_at_us = now_us + REFUSALS_WHOLE_US;
  return true;
}

bool refusals_turn(const struct refusals_pace *pace, bool others, int64_t now_us) {
  return now_us >= pace->at_us + (others ? pace->rest_us : 0);
}

static int64_t at_most(int64_t us) { return us < REST_MAX_US ? us : REST_MAX_US; }

void refusals_rest(struct refusals_pace *pace, bool dear, int64_t began_us, int64_t now_us) {
  const int64_t took_us = now_us - began_us;
  pace->at_us = dear ? now_us + at_most(took_us) : now_us;
  pace->rest_us = dear ? at_most(took_us * (REST - 1)) : 0;
}

size_t refusals_rows(size_t rows, int64_t took_us, int64_t turn_us, size_t most) {
  if (took_us > turn_us)
    return rows > 1 ? rows / 2 : 1;
  return rows * 2 < most ? rows * 2 : most;
}
