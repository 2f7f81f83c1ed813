/* SPDX-License-Identifier: MIT */
#include "amqp_window.h"

#include <stdlib.h>
#include <string.h>

enum { WORTH_SQUEEZING = 64 };

bool amqp_window_init(struct amqp_window *window, uint32_t limit) {
  *window = (struct amqp_window){.room = 2 * limit, .next = 1, .generation = 1};
  window->slots = calloc(window->room, sizeof *window->slots);
  return window->slots != NULL;
}

void amqp_window_free(struct amqp_window *window) {
  free(window->slots);
  window->slots = NULL;
}

void amqp_window_reset(struct amqp_window *window) {
  window->first = window->end = 0;
  window->next = 1;
  window->returned = 0;
  window->generation++;
}

/* Drops what is settled. As much as is kept at least is free afterwards, so this costs little per message. */
static void squeeze(struct amqp_window *window) {
  uint32_t kept = 0;
  for (uint32_t i = window->first; i < window->end; i++)
    if (window->slots[i].task)
      window->slots[kept++] = window->slots[i];
  window->first = 0;
  window->end = kept;
}

uint64_t amqp_window_add(struct amqp_window *window, const struct duebox_task *task, int64_t now_us) {
  uint64_t tag = window->next++;
  if (window->end == window->room || window->end > 2 * window->count + WORTH_SQUEEZING)
    squeeze(window); /* memory that was never used costs nothing: most channels need little of their room */
  window->slots[window->end++] = (struct amqp_slot){.task = task, .tag = tag, .sent_us = now_us};
  window->count++;
  return tag;
}

/* Where the first slot is whose tag is not below this one. */
static uint32_t place_of(const struct amqp_window *window, uint64_t tag) {
  uint32_t low = window->first, high = window->end;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (window->slots[middle].tag < tag)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

void amqp_window_touch(struct amqp_window *window, int64_t now_us) { window->slots[window->end - 1].sent_us = now_us; }

bool amqp_window_knows(const struct amqp_window *window, uint64_t tag) { return tag >= 1 && tag < window->next; }

/* Moves `first` over what is settled. Each slot is passed once, so this costs nothing per message. */
static const struct duebox_task *settle(struct amqp_window *window, struct amqp_slot *slot) {
  const struct duebox_task *task = slot->task;
  slot->task = NULL;
  window->taken_us = slot->sent_us;
  window->count--;
  while (window->first < window->end && !window->slots[window->first].task)
    window->first++;
  return task;
}

const struct duebox_task *amqp_window_take(struct amqp_window *window, uint64_t tag) {
  uint32_t place = place_of(window, tag);
  struct amqp_slot *slot = place < window->end ? &window->slots[place] : NULL;
  return slot && slot->tag == tag && slot->task ? settle(window, slot) : NULL;
}

const struct duebox_task *amqp_window_take_upto(struct amqp_window *window, uint64_t tag) {
  struct amqp_slot *oldest = window->count ? &window->slots[window->first] : NULL;
  return oldest && oldest->tag <= tag ? settle(window, oldest) : NULL;
}

static bool has_id(const struct amqp_slot *slot, const void *id, size_t len) {
  return slot->task && strlen(slot->task->message_id) == len && memcmp(slot->task->message_id, id, len) == 0;
}

const struct duebox_task *amqp_window_take_returned(struct amqp_window *window, uint64_t upto, const void *message_id,
                                                    size_t len) {
  uint32_t slots = window->end - window->first, start = place_of(window, window->returned + 1) - window->first;
  for (uint32_t i = 0; i < slots; i++) {
    struct amqp_slot *slot = &window->slots[window->first + (start + i) % slots];
    if (slot->tag <= upto && has_id(slot, message_id, len)) {
      window->returned = slot->tag;
      return settle(window, slot);
    }
  }
  return NULL;
}

const struct amqp_slot *amqp_window_oldest(const struct amqp_window *window) {
  return window->count ? &window->slots[window->first] : NULL;
}
