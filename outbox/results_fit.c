/* SPDX-License-Identifier: MIT */
#include "outbox/results_fit.h"

#include <stdlib.h>

#include "outbox/row_sizes.h"

enum { PART_FIRST = 8, PART_GROWTH = 4 }; /* rows: nobody knows at first whether they are megabytes */

bool results_fit_record(const struct results_unit *unit, size_t bytes) {
  return unit->count == 0 || unit->bytes + bytes <= ROW_SIZES_MOST;
}

static int by_row(const void *a, const void *b) {
  const struct slot *x = *(struct slot *const *)a, *y = *(struct slot *const *)b;
  return x->found < y->found ? -1 : x->found > y->found;
}

bool results_fit_begin(struct results_fit *fit, struct results_unit *unit) {
  *fit = (struct results_fit){.unit = unit, .bytes = unit->bytes};
  for (size_t i = 0; i < unit->count; i++) {
    unit->slots[i].result->measured = !unit->slots[i].found; /* it has no row */
    unit->slots[i].result->row_bytes = 0;
  }
  if (unit->parsed == 0)
    return true;
  if (!(fit->slots = calloc(unit->parsed, sizeof(struct slot *))))
    return false;
  for (size_t i = 0; i < unit->parsed; i++)
    if (unit->slots[i].found && (i == 0 || unit->slots[i - 1].found != unit->slots[i].found))
      fit->slots[fit->count++] = &unit->slots[i];
  qsort(fit->slots, fit->count, sizeof(struct slot *), by_row);
  return true;
}

/* As many as are likely to fit, if the next ones are like those before, and one more to see that it does not. */
static size_t part_size(const struct results_fit *fit) {
  if (fit->judged == 0)
    return PART_FIRST;
  size_t like = (fit->bytes - fit->unit->bytes) / fit->judged + 1, most = fit->judged * PART_GROWTH;
  size_t fits = fit->bytes < ROW_SIZES_MOST ? (ROW_SIZES_MOST - fit->bytes) / like + 1 : 0;
  return fits < most ? fits : most;
}

bool results_fit_part(struct results_fit *fit, struct text *ids) {
  size_t left = fit->count - fit->judged, size = fit->full ? 0 : part_size(fit);
  fit->end = fit->judged + (size < left ? size : left);
  text_clear(ids);
  for (size_t i = fit->judged; i < fit->end; i++) {
    text_puts(ids, ids->len ? "," : "");
    text_u64(ids, fit->slots[i]->found);
  }
  return fit->end > fit->judged;
}

static void postpone(struct results_fit *fit, struct slot *slot, bool postponed) {
  const struct slot *end = fit->unit->slots + fit->unit->parsed;
  for (struct slot *same = slot; same < end && same->found == slot->found; same++) {
    same->postponed = postponed;
    same->result->measured = slot->living;
    same->result->row_bytes = slot->row_bytes;
  }
}

void results_fit_judge(struct results_fit *fit) {
  for (; fit->judged < fit->end; fit->judged++) {
    struct slot *slot = fit->slots[fit->judged];
    bool fits = fit->judged == 0 || fit->bytes + slot->row_bytes <= ROW_SIZES_MOST;
    fit->bytes += fits ? slot->row_bytes : 0;
    fit->full = fit->full || !fits;
    postpone(fit, slot, !fits);
  }
}

void results_fit_end(struct results_fit *fit) {
  for (; fit->judged < fit->count; fit->judged++)
    postpone(fit, fit->slots[fit->judged], true);
  free(fit->slots);
  fit->slots = NULL;
}
