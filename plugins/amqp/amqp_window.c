/* SPDX-License-Identifier: MIT */
#include "amqp_window.h"

#include <stdlib.h>
#include <string.h>

static struct amqp_slot *slot_of(const struct amqp_window *window, uint64_t tag) {
  return &window->slots[tag & window->mask];
}

bool amqp_window_init(struct amqp_window *window, uint32_t slots) {
  uint64_t size = 16;
  while (size < slots)
    size *= 2;
  *window = (struct amqp_window){.mask = size - 1, .first = 1, .next = 1, .generation = 1};
  window->slots = calloc(size, sizeof *window->slots);
  return window->slots != NULL;
}

void amqp_window_free(struct amqp_window *window) {
  free(window->slots);
  window->slots = NULL;
}

void amqp_window_reset(struct amqp_window *window) {
  window->first = window->next = 1;
  window->returned = 0;
  window->generation++;
}

bool amqp_window_full(const struct amqp_window *window) { return window->next - window->first > window->mask; }

uint64_t amqp_window_add(struct amqp_window *window, const struct duebox_task *task, int64_t now_us) {
  uint64_t tag = window->next++;
  *slot_of(window, tag) = (struct amqp_slot){.task = task, .sent_us = now_us};
  window->count++;
  return tag;
}

void amqp_window_touch(struct amqp_window *window, int64_t now_us) {
  slot_of(window, window->next - 1)->sent_us = now_us;
}

bool amqp_window_knows(const struct amqp_window *window, uint64_t tag) { return tag >= 1 && tag < window->next; }

/* Moves `first` over what is settled. Each tag is passed once, so this costs nothing per message. */
static void advance(struct amqp_window *window) {
  while (window->first < window->next && !slot_of(window, window->first)->task)
    window->first++;
}

const struct duebox_task *amqp_window_take(struct amqp_window *window, uint64_t tag) {
  if (tag < window->first || tag >= window->next)
    return NULL;
  struct amqp_slot *slot = slot_of(window, tag);
  const struct duebox_task *task = slot->task;
  if (task) {
    slot->task = NULL;
    window->count--;
    advance(window);
  }
  return task;
}

const struct duebox_task *amqp_window_take_upto(struct amqp_window *window, uint64_t tag) {
  advance(window);
  return window->first <= tag ? amqp_window_take(window, window->first) : NULL;
}

static bool has_id(const struct amqp_slot *slot, const void *id, size_t len) {
  return slot->task && strlen(slot->task->message_id) == len && memcmp(slot->task->message_id, id, len) == 0;
}

const struct duebox_task *amqp_window_take_returned(struct amqp_window *window, uint64_t upto, const void *message_id,
                                                    size_t len) {
  uint64_t open = window->next - window->first;
  uint64_t start = window->returned + 1 > window->first ? window->returned + 1 - window->first : 0;
  for (uint64_t i = 0; i < open; i++) {
    uint64_t tag = window->first + (start + i) % open;
    if (tag <= upto && has_id(slot_of(window, tag), message_id, len)) {
      window->returned = tag;
      return amqp_window_take(window, tag);
    }
  }
  return NULL;
}

const struct amqp_slot *amqp_window_oldest(const struct amqp_window *window) {
  return window->count ? slot_of(window, window->first) : NULL;
}
