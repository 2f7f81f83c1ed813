/* SPDX-License-Identifier: MIT
 *
 * plugins/kafka/kafka_window.c - see kafka_window.h.
 */
#include "kafka_window.h"

#include <stdlib.h>

#define FIRST_CAP 256

static uint64_t *entry(struct kafka_window *window, uint64_t sequence) {
  return &window->ring[sequence & (window->cap - 1)];
}

static bool grow(struct kafka_window *window) {
  struct kafka_window larger = *window;
  larger.cap = window->cap ? window->cap * 2 : FIRST_CAP;
  larger.ring = malloc(larger.cap * sizeof(*larger.ring));
  if (!larger.ring)
    return false;
  for (uint64_t i = window->first; i < window->next; i++)
    *entry(&larger, i) = *entry(window, i);
  free(window->ring);
  *window = larger;
  return true;
}

/* A record that is not above one before it: either is not where it says, or reading has begun again. None of them may
 * have more stored than lets this one come again. */
static void lower(struct kafka_window *window, int64_t offset) {
  uint64_t most = (uint64_t)offset * 2;
  for (uint64_t i = window->next; i-- > window->first && *entry(window, i) / 2 > (uint64_t)offset;)
    *entry(window, i) = most | (*entry(window, i) & 1);
  if (window->stored > offset)
    window->stored = offset;
}

bool kafka_window_push(struct kafka_window *window, int64_t offset, uint64_t *sequence) {
  if (window->next - window->first == window->cap && !grow(window))
    return false;
  lower(window, offset);
  *sequence = window->next++;
  *entry(window, *sequence) = ((uint64_t)offset + 1) * 2; /* any offset: a broker may name what it likes */
  return true;
}

void kafka_window_ack(struct kafka_window *window, uint64_t sequence) {
  if (sequence < window->first || sequence >= window->next)
    return;
  *entry(window, sequence) |= 1;
  for (; window->first < window->next && *entry(window, window->first) & 1; window->first++)
    window->stored = (int64_t)(*entry(window, window->first) / 2);
}

void kafka_window_forget(struct kafka_window *window) {
  window->first = window->next;
  window->stored = -1;
}

void kafka_window_pop(struct kafka_window *window) { window->next--; }

void kafka_window_free(struct kafka_window *window) {
  free(window->ring);
  *window = KAFKA_WINDOW_EMPTY;
}
