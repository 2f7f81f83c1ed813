/* SPDX-License-Identifier: MIT */
#include "outbox/write_group.h"

#include <stdlib.h>

enum { SAME_TIME_US = 1000 };

uint32_t attempt_of(const struct decision *d) {
  return d->record && d->record->attempt ? d->record->attempt : d->attempt;
}

/* What a consumer said that the row or its attempt keeps. */
static bool says_something(const struct result_record *record) {
  return record->progress >= 0 || record->checkpoint || record->result_json || record->error_stack;
}

static bool has_texts(const struct decision *d) {
  return d->error_class || d->error || d->alert_route || (d->record && says_something(d->record));
}

static int order(int64_t a, int64_t b) { return (a > b) - (a < b); }

/* By all that is written, the time of publishing apart. */
static int by_values(const struct decision *x, const struct decision *y) {
  int found = order(has_texts(x), has_texts(y));
  found = found ? found : order(x->event, y->event);
  found = found ? found : order(x->changed, y->changed);
  found = found ? found : order(x->form, y->form);
  found = found ? found : order(x->changed_at.len != 0, y->changed_at.len != 0);
  found = found ? found : order(x->from, y->from);
  found = found ? found : order(x->attempt_from, y->attempt_from);
  found = found ? found : order(x->attempt, y->attempt);
  found = found ? found : order(attempt_of(x), attempt_of(y));
  found = found ? found : order(x->record != NULL, y->record != NULL);
  found = found ? found : order(x->failures, y->failures);
  found = found ? found : order(x->recoveries, y->recoveries);
  found = found ? found : order(x->delay_us, y->delay_us);
  found = found ? found : order(x->keep_us, y->keep_us);
  found = found ? found : order((int64_t)x->answer_to, (int64_t)y->answer_to);
  return found ? found : order(x->published_us != 0, y->published_us != 0);
}

static int by_group(const void *a, const void *b) {
  const struct decision *x = *(struct decision *const *)a, *y = *(struct decision *const *)b;
  int found = by_values(x, y);
  found = found ? found : order(x->published_us, y->published_us);
  return found ? found : (x->id > y->id) - (x->id < y->id);
}

void group_sort(struct decision **decisions, size_t count) { qsort(decisions, count, sizeof *decisions, by_group); }

size_t group_first(struct decision *const *decisions, size_t count) {
  size_t n = 0;
  if (count == 0 || has_texts(decisions[0]))
    return 0;
  while (n < count && by_values(decisions[0], decisions[n]) == 0 &&
         decisions[n]->published_us - decisions[0]->published_us < SAME_TIME_US)
    n++;
  return n;
}
