/* SPDX-License-Identifier: MIT
 *
 * tests/bench/tools/raw_null.c - rows to nowhere: what reading and deleting alone cost.
 */
#include <stdlib.h>

#include "raw_loop.h"

struct none {
  uint64_t *ids; /* a ring */
  size_t cap, head, count;
};

static void *open_null(const struct raw_settings *s) {
  struct none *n = calloc(1, sizeof *n);
  if (!n || !(n->ids = calloc(s->window, sizeof *n->ids)))
    raw_fail("null", "out of memory");
  n->cap = s->window;
  return n;
}

static void send_null(void *sink, const struct raw_row *row) {
  struct none *n = sink;
  n->ids[(n->head + n->count++) % n->cap] = row->id;
}

static size_t reap_null(void *sink, uint64_t *ids, size_t cap, int wait_ms) {
  struct none *n = sink;
  size_t count = 0;
  for (; count < cap && n->count > 0; n->count--) {
    ids[count++] = n->ids[n->head];
    n->head = (n->head + 1) % n->cap;
  }
  return count;
}

static void close_null(void *sink) {
  struct none *n = sink;
  free(n->ids);
  free(n);
}

const struct raw_sink raw_null = {"null", open_null, send_null, reap_null, close_null};
