/* SPDX-License-Identifier: MIT
 *
 * plugins/kafka/kafka_search.c - see kafka_search.h.
 */
#include "kafka_search.h"

/* Chooses the next place, or ends the search: between `taken` and `free` is nothing left. */
static void aim(struct kafka_search *search) {
  int64_t width = search->free - search->taken;
  if (width <= 1) {
    search->at = search->free;
    search->obstacle = -1;
    return;
  }
  search->at = search->taken + (search->stride < width ? search->stride : width / 2);
}

void kafka_search_begin(struct kafka_search *search, int64_t obstacle, int64_t taken, int64_t high, int singles) {
  *search = (struct kafka_search){.obstacle = obstacle, .taken = taken, .free = high, .stride = 1, .singles = singles};
  aim(search);
}

bool kafka_search_saw(struct kafka_search *search, int64_t first) {
  if (first == search->obstacle) {
    search->taken = search->at;
    if (search->singles > 0)
      search->singles--;
    else if (search->stride < search->free)
      search->stride *= 2;
  } else {
    search->free = search->at;
    search->stride = search->free - search->taken; /* from here on by halves */
  }
  bool found = search->at == search->free && search->free - search->taken <= 1;
  aim(search);
  return found;
}

bool kafka_search_believes(int64_t last, int64_t claimed, int64_t high) {
  return (last >= 0 && claimed == last + 1) || claimed < high;
}
