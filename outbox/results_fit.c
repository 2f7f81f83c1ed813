/* SPDX-License-Identifier: MIT */
#include "outbox/results_fit.h"

#include <stdlib.h>

#include "outbox/row_sizes.h"

/* Rows: nobody knows at first whether they are megabytes. Where those of the last transaction were small these are so
 * too, most likely, and it is no harm to read some that are not. */
enum { PART_FIRST = 16, PART_LIKELY = 256, PART_GROWTH = 8 };

bool results_fit_record(const struct results_unit *unit, size_t bytes) {
  return unit->count == 0 || unit->bytes + bytes <= ROW_SIZES_MOST;
}

bool results_fit_begin(struct results_fit *fit, const struct results_unit *unit, size_t likely) {
  for (size_t i = 0; i < unit->count; i++)
    unit->slots[i].result->measured = true; /* as nothing, until a row is found */
  *fit =
      (struct results_fit){.bytes = unit->bytes, .likely = likely, .ids = calloc(unit->parsed + 1, sizeof *fit->ids)};
  return fit->ids;
}

void results_fit_add(struct results_fit *fit, uint64_t id) { fit->ids[fit->count++] = id; }

static int by_id(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return x < y ? -1 : x > y;
}

size_t results_fit_usual(const struct results_fit *fit) {
  return fit->taken ? fit->row_bytes / fit->taken + 1 : fit->likely;
}

/* As many as are likely to fit, if the next ones are like those before, and one more to see that it does not. A record
 * that leaves no room is the only one, and its row is read all the same: otherwise it would never be written. */
static size_t part_size(const struct results_fit *fit) {
  size_t like = results_fit_usual(fit), most = fit->next * PART_GROWTH;
  if (fit->next == 0)
    most = like ? PART_LIKELY : PART_FIRST;
  like = like ? like : 1;
  size_t fits = fit->bytes < ROW_SIZES_MOST ? (ROW_SIZES_MOST - fit->bytes) / like + 1 : fit->taken == 0;
  return fits < most ? fits : most;
}

static bool list(const struct results_fit *fit, size_t from, size_t to, struct text *ids) {
  text_clear(ids);
  for (size_t i = from; i < to; i++) {
    text_puts(ids, ids->len ? "," : "");
    text_u64(ids, fit->ids[i]);
  }
  return from < to;
}

bool results_fit_part(struct results_fit *fit, struct text *ids) {
  if (fit->next == 0)
    qsort(fit->ids, fit->count, sizeof *fit->ids, by_id);
  size_t from = fit->next, size = fit->full ? 0 : part_size(fit);
  fit->next = size < fit->count - from ? from + size : fit->count;
  return list(fit, from, fit->next, ids);
}

void results_fit_row(struct results_fit *fit, struct slot *first, const struct slot *end) {
  bool fits = fit->taken == 0 || fit->bytes + first->row_bytes <= ROW_SIZES_MOST;
  fit->full = fit->full || !fits;
  if (fits) {
    fit->taken++;
    fit->row_bytes += first->row_bytes;
    fit->bytes += first->row_bytes;
  }
  for (struct slot *slot = first; slot < end; slot++) {
    slot->postponed = !fits;
    slot->result->row_bytes = first->row_bytes;
  }
}

bool results_fit_rest(const struct results_fit *fit, struct text *ids) { return list(fit, fit->next, fit->count, ids); }

void results_fit_end(struct results_fit *fit) {
  free(fit->ids);
  fit->ids = NULL;
}
