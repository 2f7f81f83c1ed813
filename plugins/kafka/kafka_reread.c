/* SPDX-License-Identifier: MIT
 *
 * plugins/kafka/kafka_reread.c - see kafka_reread.h.
 */
#include "kafka_reread.h"

#include <stdlib.h>

#define FIRST_CAP 64

static bool add(struct kafka_reread_list *list, int64_t offset) {
  if (list->count == list->cap) {
    size_t cap = list->cap ? list->cap * 2 : FIRST_CAP;
    struct kafka_reread_offset *more = realloc(list->items, cap * sizeof(*more));
    if (!more)
      return false;
    list->items = more;
    list->cap = cap;
  }
  list->items[list->count++] = (struct kafka_reread_offset){offset, 1};
  return true;
}

static void empty(struct kafka_reread_list *list) {
  free(list->items);
  *list = (struct kafka_reread_list){0};
}

/* Without memory a record is not remembered, and is taken again. */
void kafka_reread_took(struct kafka_reread *reread, int64_t last, int64_t place, int64_t claimed) {
  if (reread->gap < 0 && last >= 0 && place > last + 1)
    reread->gap = last + 1;
  if (reread->gap >= 0)
    (void)add(&reread->taken, claimed);
}

bool kafka_reread_is_due(const struct kafka_reread *reread) { return reread->gap >= 0 && reread->from < 0; }

bool kafka_reread_is_full(const struct kafka_reread *reread) { return reread->taken.count >= KAFKA_REREAD_MANY; }

static int by_offset(const void *a, const void *b) {
  const struct kafka_reread_offset *left = a, *right = b;
  return (left->offset > right->offset) - (left->offset < right->offset);
}

/* One item for each offset, in order. */
static void arrange(struct kafka_reread_list *list) {
  size_t count = 0;
  if (list->count > 0)
    qsort(list->items, list->count, sizeof(*list->items), by_offset);
  for (size_t i = 0; i < list->count; i++)
    if (count > 0 && list->items[count - 1].offset == list->items[i].offset)
      list->items[count - 1].count++;
    else
      list->items[count++] = list->items[i];
  list->count = count;
}

int64_t kafka_reread_begin(struct kafka_reread *reread) {
  empty(&reread->known);
  reread->known = reread->taken;
  reread->left = reread->known.count;
  reread->taken = (struct kafka_reread_list){0};
  reread->from = reread->gap;
  reread->gap = -1;
  arrange(&reread->known);
  return reread->from;
}

bool kafka_reread_knows(struct kafka_reread *reread, int64_t claimed) {
  const struct kafka_reread_offset wanted = {.offset = claimed};
  struct kafka_reread_offset *found =
      reread->left > 0 ? bsearch(&wanted, reread->known.items, reread->known.count, sizeof(wanted), by_offset) : NULL;
  if (!found || found->count == 0)
    return false;
  found->count--;
  if (--reread->left == 0)
    kafka_reread_end(reread);
  return true;
}

void kafka_reread_end(struct kafka_reread *reread) {
  empty(&reread->known);
  reread->left = 0;
  reread->from = -1;
}

int64_t kafka_reread_doubt(const struct kafka_reread *reread) {
  return reread->from >= 0 && (reread->gap < 0 || reread->from < reread->gap) ? reread->from : reread->gap;
}

void kafka_reread_forget(struct kafka_reread *reread) {
  kafka_reread_end(reread);
  empty(&reread->taken);
  *reread = KAFKA_REREAD_NONE;
}
