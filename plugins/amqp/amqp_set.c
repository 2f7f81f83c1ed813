/* SPDX-License-Identifier: MIT */
#include "amqp_set.h"

#include <stdlib.h>
#include <string.h>

bool amqp_set_init(struct amqp_set *set, uint32_t capacity) {
  uint32_t size = 16;
  while (size / 2 < capacity)
    size *= 2;
  *set = (struct amqp_set){.mask = size - 1};
  set->slots = calloc(size, sizeof *set->slots);
  return set->slots != NULL;
}

void amqp_set_free(struct amqp_set *set) {
  free(set->slots);
  set->slots = NULL;
}

void amqp_set_clear(struct amqp_set *set) {
  memset(set->slots, 0, (set->mask + (size_t)1) * sizeof *set->slots);
  set->count = 0;
}

uint64_t amqp_set_key(char kind, const char *text) {
  uint64_t hash = (14695981039346656037u ^ (unsigned char)kind) * 1099511628211u; /* FNV-1a */
  for (; *text; text++)
    hash = (hash ^ (unsigned char)*text) * 1099511628211u;
  return hash ? hash : 1;
}

/* The place of a key, or the free place where it belongs. The set is never more than half full. */
static uint32_t place(const struct amqp_set *set, uint64_t key) {
  uint32_t i = (uint32_t)(key ^ key >> 32) & set->mask;
  while (set->slots[i] && set->slots[i] != key)
    i = (i + 1) & set->mask;
  return i;
}

bool amqp_set_has(const struct amqp_set *set, uint64_t key) { return set->count && set->slots[place(set, key)] == key; }

void amqp_set_add(struct amqp_set *set, uint64_t key) {
  if (set->count > set->mask / 2)
    amqp_set_clear(set);
  uint32_t i = place(set, key);
  if (!set->slots[i]) {
    set->slots[i] = key;
    set->count++;
  }
}

void amqp_set_remove(struct amqp_set *set, uint64_t key) {
  uint32_t hole = place(set, key);
  if (!set->slots[hole])
    return;
  set->slots[hole] = 0;
  set->count--;
  /* Linear probing without gaps: what stands behind the hole is put in again. */
  for (uint32_t i = (hole + 1) & set->mask; set->slots[i]; i = (i + 1) & set->mask) {
    uint64_t moved = set->slots[i];
    set->slots[i] = 0;
    set->slots[place(set, moved)] = moved;
  }
}
