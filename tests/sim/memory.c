/* SPDX-License-Identifier: MIT */
#include "memory.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/attr.h"

/* In front of every allocation, so that a machine's can be found. */
struct head {
  alignas(max_align_t) struct head *next, **before;
  size_t size;
  unsigned machine;
  unsigned mark;
};
enum { MARK = 0x5eed, MACHINES = 16, FREED = 0xdb, FREED_MAX = 4096, KEPT_MAX = 512 };

static struct head *owned[MACHINES];
static size_t counts[MACHINES];
static struct head *kept[KEPT_MAX]; /* freed last: nobody else gets their memory, and nobody may write there */
static unsigned next_kept;
static bool spoilt;
static unsigned current;

/* The linker's names for what it wraps.
 * NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp) */
void *__real_malloc(size_t size);
void *__real_realloc(void *old, size_t size);
void __real_free(void *at);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
void __wrap_free(void *at);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t len);
/* NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp) */

unsigned memory_belongs_to(unsigned machine) {
  unsigned before = current;
  current = machine < MACHINES ? machine : 0;
  return before;
}

static void take_in(struct head *head) {
  head->next = owned[head->machine];
  head->before = &owned[head->machine];
  if (head->next)
    head->next->before = &head->next;
  owned[head->machine] = head;
  counts[head->machine]++;
}

static void take_out(struct head *head) {
  *head->before = head->next;
  if (head->next)
    head->next->before = head->before;
  counts[head->machine]--;
}

void *__wrap_malloc(size_t size) {
  struct head *head = __real_malloc(sizeof *head + size);
  if (!head)
    return NULL;
  *head = (struct head){.size = size, .machine = current, .mark = MARK};
  take_in(head);
  return head + 1;
}

void *__wrap_calloc(size_t count, size_t size) {
  size_t bytes;
  void *at = __builtin_mul_overflow(count, size, &bytes) ? NULL : __wrap_malloc(bytes);
  return at ? memset(at, 0, bytes) : NULL;
}

/* NULL: it came from the C library itself. */
static struct head *head_of(void *at) {
  struct head *head = (struct head *)at - 1;
  return head->mark == MARK ? head : NULL;
}

void *__wrap_realloc(void *old, size_t size) {
  struct head *head = old ? head_of(old) : NULL;
  if (old && !head)
    return __real_realloc(old, size);
  unsigned before = memory_belongs_to(head ? head->machine : current);
  void *at = __wrap_malloc(size);
  (void)memory_belongs_to(before);
  if (at && head) {
    memcpy(at, old, head->size < size ? head->size : size);
    __wrap_free(old);
  }
  return at;
}

static size_t filled(const struct head *head) { return head->size < FREED_MAX ? head->size : FREED_MAX; }

static bool is_as_it_was_freed(const struct head *head) {
  const unsigned char *bytes = (const void *)(head + 1);
  for (size_t i = 0; i < filled(head); i++)
    if (bytes[i] != FREED)
      return false;
  return true;
}

/* Keeps a block for a while, in the place of one that was freed long before. */
static void keep(struct head *head) {
  struct head **place = &kept[next_kept++ % KEPT_MAX];
  if (*place) {
    spoilt = spoilt || !is_as_it_was_freed(*place);
    __real_free(*place);
  }
  *place = head;
}

bool memory_spoilt(void) {
  for (unsigned i = 0; i < KEPT_MAX; i++)
    keep(NULL);
  bool was = spoilt;
  spoilt = false;
  return was;
}

void __wrap_free(void *at) {
  struct head *head = at ? head_of(at) : NULL;
  if (!head) {
    __real_free(at);
    return;
  }
  take_out(head);
  memset(at, FREED, filled(head)); /* whoever uses it still finds nothing */
  head->mark = 0;
  keep(head);
}

char *__wrap_strndup(const char *text, size_t len) {
  size_t bytes = strnlen(text, len);
  char *copy = __wrap_malloc(bytes + 1);
  if (copy) {
    memcpy(copy, text, bytes);
    copy[bytes] = '\0';
  }
  return copy;
}
char *__wrap_strdup(const char *text) { return __wrap_strndup(text, strlen(text)); }

void memory_free_all(unsigned machine) {
  while (owned[machine])
    __wrap_free(owned[machine] + 1);
}
size_t memory_count(unsigned machine) { return counts[machine]; }
