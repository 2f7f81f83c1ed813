/* SPDX-License-Identifier: MIT */
#include "outbox/settle_judge.h"

#include "outbox/db_error.h"

bool settle_ends(const struct decision *d) {
  return !d->changed && !task_state_living(task_state_next(d->from, d->event));
}

bool settle_cuts(enum decision_form form) {
  return form == DECISION_CUT || form == DECISION_OWN_ID || form >= DECISION_NO_LINES_CUT;
}

bool settle_form_helps(enum decision_form form, int code) {
  if (form == DECISION_CUT)
    return db_error_is_value(code);
  return form != DECISION_OWN_ID || code == DB_NO_ROW_ID;
}

void settle_compare(struct decision *d, const struct task *now, bool same) {
  bool limited = d->event == EVENT_RETRY || d->event == EVENT_DEAD;
  d->changed = !same;
  d->again = same && limited && now->max_attempts != d->sent->max_attempts;
  if (d->again)
    d->max_attempts = now->max_attempts;
}

size_t settle_leave_again(struct decision **list, size_t count) {
  size_t kept = 0;
  for (size_t i = 0; i < count; i++)
    if (list[i]->again)
      list[i]->busy = true;
    else
      list[kept++] = list[i];
  return kept;
}

void settle_note_unknown(struct decision *d, uint32_t commit) {
  if (d->applied && !d->unknown)
    d->unknown = commit;
}

/* Whether the row tells that the decision was written: by its state, or by its attempt. */
static bool leaves_a_mark(const struct decision *d) {
  return d->changed || d->attempt != d->attempt_from || task_state_next(d->from, d->event) != d->from;
}

static bool has_happened(uint32_t commit, struct decision *const *as_it_was, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (as_it_was[i]->unknown == commit && leaves_a_mark(as_it_was[i]))
      return false;
  return true;
}

size_t settle_resolve_unknown(struct decision **list, size_t count, struct decision *const *as_it_was,
                              size_t as_it_was_count) {
  uint32_t commit = 0; /* the last one that was asked about; 0 = none */
  bool happened = false;
  size_t kept = 0;
  for (size_t i = 0; i < count; i++) {
    struct decision *d = list[i];
    if (d->unknown && d->unknown != commit)
      happened = has_happened(commit = d->unknown, as_it_was, as_it_was_count);
    d->written = d->unknown && happened && !d->busy && !d->mismatch && (!d->gone || settle_ends(d));
    d->applied = d->written;
    d->gone = d->gone && !d->written;
  }
  for (size_t i = 0; i < count; i++) { /* they have all told by now */
    struct decision *d = list[i];
    d->unknown = d->busy ? d->unknown : 0;
    if (!d->written)
      list[kept++] = d;
  }
  return kept;
}
