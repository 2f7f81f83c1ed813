/* SPDX-License-Identifier: MIT
 *
 * core/base/arena.h - memory that is freed at once: a configuration and everything it points to.
 *
 * Allocation cannot fail: an arena holds kilobytes that are needed at start or reload, and a process that cannot have
 * them has nothing left to decide. It says so on stderr and aborts; the leases run out and another daemon goes on.
 * Never used for data whose size a stranger chooses. Memory is wiped when freed, because secrets live here.
 * One thread at a time.
 */
#ifndef CORE_BASE_ARENA_H
#define CORE_BASE_ARENA_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/attr.h"

struct arena;

struct arena *arena_new(void);
/* Frees the arena with all it gave out and sets the caller's pointer to NULL. *arena may be NULL. */
void arena_free(struct arena **arena);

/* Zeroed memory, aligned for any type. size 0 gives a valid pointer. Never NULL. */
void *arena_alloc(struct arena *arena, size_t size);
/* Zeroed memory for count items of size bytes each; aborts when the product overflows. */
void *arena_array(struct arena *arena, size_t count, size_t size);
char *arena_strdup(struct arena *arena, const char *text);
char *arena_strndup(struct arena *arena, const char *text, size_t len);
char *arena_printf(struct arena *arena, const char *fmt, ...) PRINTF(2, 3);

#endif
