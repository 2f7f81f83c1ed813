/* SPDX-License-Identifier: MIT */
#include "core/refusals.h"

/* What is cut goes by a statement of its own kind: such ones are not written with others. */
static bool is_known(const struct refusals_of *of) {
  return of->alike >= REFUSALS_ALIKE && of->form != DECISION_CUT && of->form != DECISION_FORMS;
}

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
    if (least == DECISION_WHOLE)
      *of = (struct refusals_of){0};
    return known && least == DECISION_WHOLE;
  }
  refusals->count++;
  refusals->apart_until_us = now_us + REFUSALS_APART_US;
  of->alike = written == of->form ? of->alike + 1 : 1;
  of->form = written;
  if (known || !is_known(of))
    return false;
  of->whole_at_us = now_us + REFUSALS_WHOLE_US;
  return true;
}
