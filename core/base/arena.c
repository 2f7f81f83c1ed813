/* SPDX-License-Identifier: MIT */
#include "core/base/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_SIZE = 16 * 1024 };

struct block {
  struct block *next;
  size_t size, used; /* of data */
  _Alignas(max_align_t) char data[];
};

struct arena {
  struct block *blocks; /* the first one is filled */
};

NORETURN static void out_of_memory(size_t size) {
  fprintf(stderr, "duebox: out of memory: %zu bytes for the configuration were refused; raise the memory limit\n",
          size);
  abort();
}

struct arena *arena_new(void) {
  struct arena *arena = calloc(1, sizeof *arena);
  if (!arena)
    out_of_memory(sizeof *arena);
  return arena;
}

void arena_free(struct arena **arena) {
  if (!*arena)
    return;
  for (struct block *block = (*arena)->blocks, *next; block; block = next) {
    next = block->next;
    explicit_bzero(block->data, block->used);
    free(block);
  }
  free(*arena);
  *arena = NULL;
}

void *arena_alloc(struct arena *arena, size_t size) {
  const size_t align = _Alignof(max_align_t);
  if (size > SIZE_MAX / 2)
    out_of_memory(size);
  size = (size + align - 1) / align * align;
  struct block *block = arena->blocks;
  if (!block || block->size - block->used < size) {
    size_t room = size > BLOCK_SIZE ? size : BLOCK_SIZE;
    block = calloc(1, sizeof *block + room);
    if (!block)
      out_of_memory(room);
    block->size = room;
    block->next = arena->blocks;
    arena->blocks = block;
  }
  void *memory = block->data + block->used;
  block->used += size;
  return memory;
}

void *arena_array(struct arena *arena, size_t count, size_t size) {
  size_t total;
  if (__builtin_mul_overflow(count, size, &total))
    out_of_memory(SIZE_MAX);
  return arena_alloc(arena, total);
}

char *arena_strndup(struct arena *arena, const char *text, size_t len) {
  char *copy = arena_alloc(arena, len + 1);
  memcpy(copy, text, len);
  return copy;
}

char *arena_strdup(struct arena *arena, const char *text) { return arena_strndup(arena, text, strlen(text)); }

char *arena_printf(struct arena *arena, const char *fmt, ...) {
  va_list args, again;
  va_start(args, fmt);
  va_copy(again, args);
  int len = vsnprintf(NULL, 0, fmt, args);
  va_end(args);
  char *text = arena_alloc(arena, len < 0 ? 1 : (size_t)len + 1);
  if (len > 0)
    vsnprintf(text, (size_t)len + 1, fmt, again);
  va_end(again);
  return text;
}
